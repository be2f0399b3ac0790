//! Adapters to providers' APIs: each writes a request and reads the answer's stream, and neither does I/O nor keeps a
//! key.

pub(crate) mod chat;
pub(crate) mod messages;

use std::sync::Arc;

use bytes::Bytes;
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::model::{FinishReason, ModelFailureCode, ModelRef, OutputPart, Usage, Window};
use nylorun_ports::models::{Delta, DeltaSink, ModelCall, ProviderAccess};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::catalogue::{CUSTOM, Catalogue};
use crate::failure::Fault;
use crate::outbound::OutboundRequest;
use crate::sse::SseEvent;

/// Largest answer that is read, in bytes, over all its events.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The output limit of a model that the catalogue does not know, in tokens (engine b.7).
const USUAL_OUTPUT: i64 = 8_192;

/// The APIs that this program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's Chat Completions, as many servers speak it.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

impl Api {
    /// The API of a provider, when this program can call it.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        match provider {
            CUSTOM => Some(Self::Chat),
            messages::PROVIDER => Some(Self::Messages),
            _ => None,
        }
    }

    /// The request of a call.
    pub(crate) fn request(self, target: &Target<'_>) -> Result<OutboundRequest, Fault> {
        match self {
            Self::Chat => chat::request(target),
            Self::Messages => messages::request(target),
        }
    }

    /// What reads the call's answer.
    pub(crate) fn reader(self, target: &Target<'_>) -> Box<dyn AnswerReader> {
        match self {
            Self::Chat => Box::new(chat::Reader::new(target)),
            Self::Messages => Box::new(messages::Reader::new(target)),
        }
    }
}

/// One call at one provider's model.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    /// The call.
    pub(crate) call: &'a ModelCall,
    /// Where to, and with which key.
    pub(crate) access: &'a ProviderAccess,
    /// Who is asked.
    pub(crate) model: ModelRef,
    /// What the model can hold, when it is known.
    pub(crate) window: Option<Window>,
    /// The tenant's own output limit, in tokens.
    pub(crate) max_tokens: Option<i64>,
}

impl<'a> Target<'a> {
    /// The settings of the tenant's choice win over the catalogue.
    pub(crate) fn new(call: &'a ModelCall, access: &'a ProviderAccess, catalogue: &Catalogue) -> Self {
        let settings = access.settings.value();
        let setting = |name| settings.get(name).and_then(Value::as_i64).filter(|value| *value > 0);
        let max_tokens = setting("maxTokens");
        let listed = catalogue.model(&access.provider, &access.model).map(|model| model.window());
        let context = setting("contextWindow").or(listed.map(|window| window.context));
        let output = max_tokens.or(listed.map(|window| window.output)).unwrap_or(USUAL_OUTPUT);
        let window = context.map(|context| Window { context, output: output.min(context) });
        let model = ModelRef { provider: access.provider.clone(), model: access.model.clone() };
        Self { call, access, model, window, max_tokens }
    }

    /// The most tokens that an answer may have.
    fn output_limit(&self) -> i64 {
        self.window.map_or(self.max_tokens.unwrap_or(USUAL_OUTPUT), |window| window.output)
    }

    /// A POST of JSON to `path` below the endpoint's base URL.
    fn post(&self, base: &str, path: &str, body: &impl serde::Serialize) -> Result<OutboundRequest, Fault> {
        let mut url = Url::parse(base).map_err(|error| invalid(format!("the base URL is not valid: {error}")))?;
        let full = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&full);
        let body =
            serde_json::to_vec(body).map_err(|error| invalid(format!("the request cannot be written: {error}")))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        Ok(OutboundRequest { method: Method::POST, url, headers, body: Bytes::from(body), max_answer: MAX_ANSWER })
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(ModelFailureCode::InvalidRequest, message)
}

fn bad_key() -> Fault {
    Fault::new(
        ModelFailureCode::Auth,
        "the model's key holds characters that no HTTP header may hold; set the model again",
    )
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its parts.
    pub(crate) parts: Vec<OutputPart>,
    /// Why it ended.
    pub(crate) finish: FinishReason,
    /// What it used, without cost.
    pub(crate) usage: Option<Usage>,
}

/// Whether more events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The answer goes on.
    More,
    /// The answer's end was said.
    Ended,
}

/// Reads an answer event by event.
pub(crate) trait AnswerReader: Send {
    /// Takes one event, and passes on the text in it.
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault>;
    /// Whether what came so far is a whole answer, so that a connection that breaks now costs nothing.
    fn is_complete(&self) -> bool;
    /// What was used so far, as reported.
    fn usage(&self) -> Option<Usage>;
    /// The answer.
    fn finish(self: Box<Self>) -> Answer;
}

/// The deltas of one attempt.
pub(crate) struct DeltaStream {
    sink: Arc<dyn DeltaSink>,
    attempt: u32,
    next: u32,
}

impl DeltaStream {
    /// Deltas of this attempt, counted from 1.
    pub(crate) fn new(sink: Arc<dyn DeltaSink>, attempt: u32) -> Self {
        Self { sink, attempt, next: 0 }
    }

    fn push(&mut self, text: &Text) {
        if text.is_empty() {
            return;
        }
        let text = text.lossy().into_owned();
        self.sink.delta(Delta { attempt: self.attempt, index: self.next, text });
        self.next += 1;
    }
}

/// Text that comes in pieces, perhaps cut between the halves of a surrogate pair.
#[derive(Debug, Default)]
struct Pieces(Vec<Text>);

impl Pieces {
    fn push(&mut self, piece: &Text) {
        if !piece.is_empty() {
            self.0.push(piece.clone());
        }
    }

    fn join(&self) -> Text {
        Text::concat(&self.0)
    }
}

/// A count of tokens as reported: what is missing, negative or no number counts as nothing.
fn tokens(usage: &Value, name: &str) -> i64 {
    usage.get(name).and_then(Value::as_i64).unwrap_or(0).max(0)
}

/// A tool's input as the model wrote it; nothing at all means an empty object.
fn tool_input(text: Text) -> nylorun_domain::model::ToolInput {
    use nylorun_domain::model::ToolInput;
    let written = text.as_str().map(str::trim);
    match written {
        Some("") => ToolInput::Json(Json::from_trusted("{}")),
        Some(json) => Json::parse(json).map_or_else(|_| ToolInput::Malformed(text.clone()), ToolInput::Json),
        None => ToolInput::Malformed(text.clone()),
    }
}
