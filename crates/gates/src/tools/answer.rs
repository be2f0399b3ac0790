//! What an endpoint's answer comes to (engine e.4).

use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;
use tokio::time::timeout;

use super::call::Prepared;
use super::schema::Checker;
use crate::outbound::{Outbound, OutboundAnswer, OutboundError, Progress};

/// How much of a refusal's body is shown, in characters.
const MAX_SHOWN: usize = 2_000;
/// How long a refusal's body is waited for: its status says what matters.
const REFUSAL_BODY: Duration = Duration::from_secs(2);

/// How a call that was sent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exchanged {
    /// With an outcome, which a repetition gets too.
    Known(ToolOutcome),
    /// Nobody knows whether the endpoint acted on it, or what it said.
    Lost(String),
}

/// Sends a call and reads its answer. From here on the call counts as sent.
pub(super) async fn exchange(outbound: &Outbound, call: Prepared) -> Exchanged {
    let Prepared { tool_name, request, time_limit, output_schema } = call;
    let progress = Progress::default();
    let whole = async {
        let answer = outbound.send_with(request, &progress).await?;
        read(answer, &tool_name, output_schema.as_ref()).await
    };
    match timeout(time_limit, whole).await {
        Ok(Ok(outcome)) => Exchanged::Known(outcome),
        Ok(Err(error)) => failed(&tool_name, error),
        Err(_) if progress.was_sent() => Exchanged::Known(timed_out(&tool_name, time_limit)),
        Err(_) => Exchanged::Known(not_connected(&tool_name, time_limit)),
    }
}

fn timed_out(tool: &str, limit: Duration) -> ToolOutcome {
    let ms = limit.as_millis();
    let message =
        format!("{tool} gave no answer within {ms} ms. The endpoint may have acted on the call all the same.");
    ToolOutcome::failed("http.timeout", message)
}

fn not_connected(tool: &str, limit: Duration) -> ToolOutcome {
    let ms = limit.as_millis();
    ToolOutcome::failed("http.unreachable", format!("{tool}: no connection was made within {ms} ms. Nothing was sent."))
}

fn failed(tool: &str, error: OutboundError) -> Exchanged {
    let known = |code: &str| Exchanged::Known(ToolOutcome::failed(code, format!("{tool}: {error}.")));
    match &error {
        OutboundError::Lost(_) => Exchanged::Lost(format!("http.lost: {error}")),
        OutboundError::Refused(_) => known("http.refused"),
        OutboundError::Redirect(_) => known("http.status"),
        OutboundError::NotSent { .. } => known("http.unreachable"),
        OutboundError::TimedOut => known("http.timeout"),
        OutboundError::TooLarge(_) => known("http.too-large"),
        OutboundError::SetUp(_) => known("http.failed"),
    }
}

async fn read(answer: OutboundAnswer, tool: &str, schema: Option<&Checker>) -> Result<ToolOutcome, OutboundError> {
    if !(200..300).contains(&answer.status()) {
        return Ok(refusal(answer, tool).await);
    }
    let form = Form::of(answer.header("content-type"));
    let body = whole(answer).await?;
    Ok(output(form, &body, schema)
        .unwrap_or_else(|(code, problem)| ToolOutcome::failed(code, format!("{tool}: {problem}"))))
}

async fn whole(mut answer: OutboundAnswer) -> Result<Vec<u8>, OutboundError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn refusal(answer: OutboundAnswer, tool: &str) -> ToolOutcome {
    let status = answer.status();
    // A character has at most four bytes.
    let body = timeout(REFUSAL_BODY, answer.beginning(4 * MAX_SHOWN + 4)).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let shown = match body.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &body[..end]),
        None => body.into_owned(),
    };
    let separator = if shown.is_empty() { "" } else { ": " };
    ToolOutcome::failed("http.status", format!("{tool} answered HTTP {status}{separator}{shown}"))
}

/// What a body claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
    /// Nothing is said: JSON if it is some, else text.
    Unsaid,
}

impl Form {
    pub(super) fn of(content_type: Option<&str>) -> Self {
        let Some(content_type) = content_type else { return Self::Unsaid };
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.strip_prefix("application/") {
            Some(sub) if sub == "json" || sub.ends_with("+json") => Self::Json,
            Some(_) | None if kind.ends_with("+json") => Self::Json,
            Some(_) | None if kind.is_empty() => Self::Unsaid,
            Some(_) | None => Self::Text,
        }
    }
}

/// Why a body is no output: a code, and the problem.
pub(super) type Unfit = (&'static str, String);

/// The output that a body is: JSON as it was written, text as a string, nothing as `null`.
pub(super) fn output(form: Form, body: &[u8], schema: Option<&Checker>) -> Result<ToolOutcome, Unfit> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(("http.invalid-response", "the answer is neither JSON nor text in UTF-8.".to_owned()));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let output = match (form, Json::parse(text)) {
        _ if text.trim().is_empty() => Json::null(),
        (Form::Json | Form::Unsaid, Ok(json)) => json,
        (Form::Json, Err(error)) => {
            return Err(("http.invalid-response", format!("the answer says that it is JSON and is none: {error}.")));
        }
        (Form::Text, _) | (Form::Unsaid, Err(_)) => match schema {
            None => Json::string(text),
            Some(_) => {
                let problem = "the answer is text, and the tool's outputSchema asks for JSON.";
                return Err(("http.invalid-response", problem.to_owned()));
            }
        },
    };
    match schema.map(|schema| schema.check(&output.value())) {
        None | Some(Ok(())) => Ok(ToolOutcome::Completed { output }),
        Some(Err(problems)) => {
            Err(("tool.invalid-output", format!("the answer does not follow the tool's outputSchema:\n{problems}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, body: &str) -> Result<String, &'static str> {
        match output(form, body.as_bytes(), None) {
            Ok(ToolOutcome::Completed { output }) => Ok(output.as_str().to_owned()),
            Ok(ToolOutcome::Failed { .. }) => Err("a failure as an output"),
            Err((code, _)) => Err(code),
        }
    }

    #[test]
    fn a_body_is_what_its_type_says() {
        assert_eq!(read(Form::Json, " {\"a\": 1.0}\n"), Ok("{\"a\": 1.0}".into()));
        assert_eq!(read(Form::Json, "\u{feff}[]"), Ok("[]".into()));
        assert_eq!(read(Form::Json, "nope"), Err("http.invalid-response"));
        assert_eq!(read(Form::Text, "{\"a\":1}"), Ok("\"{\\\"a\\\":1}\"".into()));
        assert_eq!(read(Form::Unsaid, "{\"a\":1}"), Ok("{\"a\":1}".into()));
        assert_eq!(read(Form::Unsaid, "hi"), Ok("\"hi\"".into()));
        for form in [Form::Json, Form::Text, Form::Unsaid] {
            assert_eq!(read(form, " \n"), Ok("null".into()));
        }
        assert_eq!(output(Form::Text, &[0xff, 0xfe], None).map_err(|(code, _)| code), Err("http.invalid-response"));
    }

    #[test]
    fn content_types_are_read_without_case_and_parameters() {
        let table = [
            (None, Form::Unsaid),
            (Some(""), Form::Unsaid),
            (Some("application/json"), Form::Json),
            (Some("Application/JSON; charset=utf-8"), Form::Json),
            (Some("application/problem+json"), Form::Json),
            (Some("model/gltf+json"), Form::Json),
            (Some("text/html"), Form::Text),
            (Some("application/octet-stream"), Form::Text),
        ];
        for (content_type, form) in table {
            assert_eq!(Form::of(content_type), form, "{content_type:?}");
        }
    }

    #[test]
    fn an_output_follows_its_schema() {
        let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;
        let schema = Checker::new(&Json::from_trusted(schema)).unwrap();
        let code = |form, body: &str| output(form, body.as_bytes(), Some(&schema)).map_err(|(code, _)| code);
        assert_eq!(
            code(Form::Json, "{\"n\":1}"),
            Ok(ToolOutcome::Completed { output: Json::from_trusted("{\"n\":1}") })
        );
        assert_eq!(code(Form::Json, "{\"n\":\"1\"}"), Err("tool.invalid-output"));
        assert_eq!(code(Form::Json, ""), Err("tool.invalid-output"));
        assert_eq!(code(Form::Text, "{\"n\":1}"), Err("http.invalid-response"));
    }
}
