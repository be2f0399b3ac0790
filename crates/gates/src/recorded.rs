//! What recorded bytes come to, without a connection: a provider's stream, an HTTP tool's answer. Tests feed what no
//! honest peer would send.

use std::sync::{Arc, Mutex, PoisonError};

use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::model::{FinishReason, OutputPart, Prompt};
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::models::{Delta, DeltaSink, ModelCall, ProviderAccess};
use nylorun_ports::secret::Secret;

use crate::catalogue::Catalogue;
use crate::failure::Fault;
use crate::providers::{Answer, Api, DeltaStream, Flow, Target};
use crate::sse::SseParser;
use crate::tools;

/// What a reader made of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The parts of the answer and why it ended, or what is wrong with it, in words.
    pub answer: Result<(Vec<OutputPart>, FinishReason), String>,
    /// The text that was passed on while it came.
    pub deltas: String,
}

/// Reads the stream of a provider's answer that comes in these chunks; `None` for a provider that this program does
/// not know.
pub fn read_stream<'a>(
    provider: &str,
    catalogue: &Catalogue,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Option<Recorded> {
    let (answer, deltas) = read_answer(Api::of(provider)?, provider, catalogue, chunks);
    let answer = answer.map(|answer| (answer.parts, answer.finish)).map_err(|fault| fault.message);
    Some(Recorded { answer, deltas })
}

/// What the body of an HTTP tool's answer comes to: the output, or the code of what is wrong. `None` when the schema
/// cannot be used.
pub fn read_tool_answer(
    content_type: Option<&str>,
    body: &[u8],
    schema: Option<&Json>,
) -> Option<Result<Json, &'static str>> {
    Some(tools::read_body(content_type, body, schema)?.and_then(|outcome| match outcome {
        ToolOutcome::Completed { output } => Ok(output),
        ToolOutcome::Failed { .. } => Err("tool.failed"),
    }))
}

/// Keeps the text of what it is given.
#[derive(Default)]
struct Texts(Mutex<String>);

impl DeltaSink for Texts {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&delta.text);
    }
}

/// The answer of a stream that ends where its chunks do, and the text that was passed on.
pub(crate) fn read_answer<'a>(
    api: Api,
    provider: &str,
    catalogue: &Catalogue,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<Answer, Fault>, String) {
    let (call, access) = a_call(provider);
    let mut reader = api.reader(&Target::new(&call, &access, catalogue));
    let texts = Arc::new(Texts::default());
    let mut deltas = DeltaStream::new(texts.clone(), 1);
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    let mut fault = None;
    'stream: for chunk in chunks {
        if parser.push(chunk, &mut events).is_err() {
            break;
        }
        for event in events.drain(..) {
            match reader.take(&event, &mut deltas) {
                Ok(Flow::More) => {}
                Ok(Flow::Ended) => break 'stream,
                Err(said) => {
                    fault = Some(said);
                    break 'stream;
                }
            }
        }
    }
    let _ = (reader.is_complete(), reader.usage());
    let answer = reader.finish();
    let text = texts.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (fault.map_or(Ok(answer), Err), text)
}

/// The call that every recording is taken for.
fn a_call(provider: &str) -> (ModelCall, ProviderAccess) {
    let prompt = Prompt { instructions: Vec::new(), items: Vec::new(), tools: Vec::new(), output_schema: None };
    let call = ModelCall {
        session_id: SessionId::from_trusted("s"),
        turn_id: TurnId::from_trusted("t"),
        agent_id: AgentId::from_trusted("a"),
        epoch: 1,
        effect_id: EffectId::from_trusted("e"),
        invocation_id: InvocationId::from_trusted("i"),
        prompt,
    };
    let access = ProviderAccess {
        provider: provider.to_owned(),
        model: "m".to_owned(),
        base_url: None,
        settings: Json::from_trusted("{}"),
        key: Secret::new("k"),
    };
    (call, access)
}
