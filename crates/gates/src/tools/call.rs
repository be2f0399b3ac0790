//! What a call is made of, from the manifest and the model's input (sandbox-and-definitions d1, HTTP target).

use std::time::Duration;

use bytes::Bytes;
use nylorun_domain::json::Json;
use nylorun_domain::manifest::{HttpMethod, HttpTarget, Tool, ToolExecutor};
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::http_tools::HttpToolCall;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::schema::Checker;
use crate::outbound::OutboundRequest;

/// Largest answer that is read, in bytes (engine b.8).
pub(super) const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// A call that may be sent.
pub(super) struct Prepared {
    /// The tool, for messages.
    pub(super) tool_name: String,
    /// What is sent.
    pub(super) request: OutboundRequest,
    /// How long the whole answer may take.
    pub(super) time_limit: Duration,
    /// What the answer must be, if the manifest says.
    pub(super) output_schema: Option<Checker>,
}

impl Prepared {
    /// The call as the manifest describes it, or the failure that it comes to without being sent.
    pub(super) fn new(call: &HttpToolCall) -> Result<Self, ToolOutcome> {
        let (tool, target) = declared(call)?;
        check_input(tool, &call.input)?;
        if let Some(credential) = &target.credential {
            let message = format!("The tool {} needs the credential {credential:?}, which no vault holds.", tool.name);
            return Err(ToolOutcome::failed("http.credential", message));
        }
        let output_schema =
            tool.output_schema.as_ref().map(|schema| checker(schema, "outputSchema", tool)).transpose()?;
        let url = Url::parse(&target.url)
            .map_err(|_| ToolOutcome::failed("http.failed", format!("The URL of {} cannot be read.", tool.name)))?;
        let request = OutboundRequest {
            method: method(target.method),
            url,
            headers: headers(call),
            body: Bytes::copy_from_slice(call.input.as_str().as_bytes()),
            max_answer: MAX_ANSWER,
        };
        Ok(Self {
            tool_name: tool.name.clone(),
            request,
            time_limit: Duration::from_millis(target.timeout_ms.into()),
            output_schema,
        })
    }
}

fn declared(call: &HttpToolCall) -> Result<(&Tool, &HttpTarget), ToolOutcome> {
    let tool = call.manifest.tool(&call.tool_name).map(|(_, tool)| tool);
    let target = tool.and_then(|tool| match &tool.executor {
        ToolExecutor::Http(target) => Some((tool, target)),
        ToolExecutor::Workspace(_) | ToolExecutor::Agent(_) | ToolExecutor::Skill(_) | ToolExecutor::None => None,
    });
    target.ok_or_else(|| {
        let message = format!("The turn's manifest declares no HTTP tool named {}.", call.tool_name);
        ToolOutcome::failed("http.undeclared", message)
    })
}

fn checker(schema: &Json, which: &str, tool: &Tool) -> Result<Checker, ToolOutcome> {
    Checker::new(schema).map_err(|problem| {
        let message = format!("The {which} of {} cannot be used, so nothing was sent: {problem}", tool.name);
        ToolOutcome::failed("http.failed", message)
    })
}

fn check_input(tool: &Tool, input: &Json) -> Result<(), ToolOutcome> {
    checker(&tool.input_schema, "inputSchema", tool)?.check(&input.value()).map_err(|problems| {
        let message = format!("The input of {} does not follow its inputSchema:\n{problems}", tool.name);
        ToolOutcome::failed("tool.invalid-arguments", message)
    })
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
    }
}

/// Who calls, and the key under which an endpoint may recognise a call that it has seen (api 1.3).
fn headers(call: &HttpToolCall) -> HeaderMap {
    let named = [
        ("nylorun-session-id", call.session_id.as_str()),
        ("nylorun-turn-id", call.turn_id.as_str()),
        ("nylorun-agent-id", call.agent_id.as_str()),
        ("idempotency-key", call.effect_id.as_str()),
    ];
    let ids = named.into_iter().filter_map(|(name, id)| Some((HeaderName::from_static(name), header_value(id)?)));
    let fixed = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.1")),
    ];
    fixed.into_iter().chain(ids).collect()
}

/// An id as a header's value. Ids may hold any characters but control characters; what is not visible ASCII, and `%`
/// itself, is percent-encoded.
fn header_value(id: &str) -> Option<HeaderValue> {
    let mut value = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'%' => value.push_str("%25"),
            b'!'..=b'~' => value.push(char::from(byte)),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::header_value;

    #[test]
    fn ids_of_any_characters_fit_into_a_header() {
        let value = |id| header_value(id).unwrap();
        assert_eq!(value("turn-1:0:tool:ab"), "turn-1:0:tool:ab");
        assert_eq!(value("zoë 50%"), "zo%C3%AB%2050%25");
    }
}
