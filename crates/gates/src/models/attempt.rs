//! One attempt of a call: the request, and the answer's stream under its watchdog.

use std::future::Future;
use std::time::Duration;

use nylorun_domain::json::{Value, parse};
use nylorun_domain::model::ModelFailureCode;
use tokio::time::timeout;

use super::CallSettings;
use crate::failure::Fault;
use crate::outbound::{Outbound, OutboundAnswer, OutboundError};
use crate::providers::{Answer, AnswerReader, Api, DeltaStream, Flow, Target};
use crate::sse::{SseEvent, SseParser};

/// How much of a refusal's body is read, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

/// Makes one attempt.
pub(super) async fn run(
    outbound: &Outbound,
    settings: &CallSettings,
    api: Api,
    target: &Target<'_>,
    mut deltas: DeltaStream,
) -> Result<Answer, Fault> {
    let mut reader = api.reader(target);
    let whole = read(outbound, settings, api, target, reader.as_mut(), &mut deltas);
    let read =
        timeout(settings.request, whole).await.unwrap_or_else(|_| Err(timed_out("no whole answer", settings.request)));
    match read {
        Ok(()) => Ok(reader.finish()),
        // The answer's end was read before the connection broke.
        Err(fault) if reader.is_complete() && is_of_connection(&fault) => Ok(reader.finish()),
        Err(fault) => Err(Fault { usage: reader.usage(), ..fault }),
    }
}

fn is_of_connection(fault: &Fault) -> bool {
    matches!(fault.code, ModelFailureCode::Transient | ModelFailureCode::Timeout)
}

async fn read(
    outbound: &Outbound,
    settings: &CallSettings,
    api: Api,
    target: &Target<'_>,
    reader: &mut dyn AnswerReader,
    deltas: &mut DeltaStream,
) -> Result<(), Fault> {
    let request = api.request(target)?;
    let mut answer = watched(settings.idle, outbound.send(request)).await?;
    if !(200..300).contains(&answer.status()) {
        return Err(refusal(answer, settings.idle).await);
    }
    match answer.header("content-type") {
        Some(kind) if kind.contains("html") => Err(Fault::unreadable(format!(
            "the endpoint answered with {kind} rather than with an event stream; is the base URL right?"
        ))),
        Some(kind) if kind.starts_with("application/json") => read_document(answer, settings, reader, deltas).await,
        Some(_) | None => read_stream(&mut answer, settings, reader, deltas).await,
    }
}

async fn read_stream(
    answer: &mut OutboundAnswer,
    settings: &CallSettings,
    reader: &mut dyn AnswerReader,
    deltas: &mut DeltaStream,
) -> Result<(), Fault> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    while let Some(chunk) = watched(settings.idle, answer.chunk()).await? {
        parser.push(&chunk, &mut events).map_err(|_| Fault::unreadable("an event of the answer is too long"))?;
        for event in events.drain(..) {
            if reader.take(&event, deltas)? == Flow::Ended {
                return Ok(());
            }
        }
    }
    ended(reader)
}

/// A server that does not stream answers with one document.
async fn read_document(
    mut answer: OutboundAnswer,
    settings: &CallSettings,
    reader: &mut dyn AnswerReader,
    deltas: &mut DeltaStream,
) -> Result<(), Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = watched(settings.idle, answer.chunk()).await? {
        body.extend_from_slice(&chunk);
    }
    let data = String::from_utf8_lossy(&body).into_owned();
    reader.take(&SseEvent { name: String::new(), data }, deltas)?;
    ended(reader)
}

fn ended(reader: &dyn AnswerReader) -> Result<(), Fault> {
    if reader.is_complete() { Ok(()) } else { Err(Fault::transient("the stream ended before the answer did")) }
}

/// Awaits something of the connection, under the watchdog.
async fn watched<T>(idle: Duration, step: impl Future<Output = Result<T, OutboundError>>) -> Result<T, Fault> {
    match timeout(idle, step).await {
        Ok(done) => done.map_err(lost),
        Err(_) => Err(timed_out("nothing came", idle)),
    }
}

fn timed_out(what: &str, limit: Duration) -> Fault {
    Fault::new(ModelFailureCode::Timeout, format!("{what} from the provider within {} s", limit.as_secs_f64()))
}

fn lost(error: OutboundError) -> Fault {
    let message = error.to_string();
    match error {
        OutboundError::Refused(_) | OutboundError::Redirect(_) => Fault::new(ModelFailureCode::InvalidRequest, message),
        OutboundError::NotSent(_) | OutboundError::Lost(_) | OutboundError::SetUp(_) => Fault::transient(message),
        OutboundError::TimedOut => Fault::new(ModelFailureCode::Timeout, message),
        OutboundError::TooLarge(_) => Fault::unreadable(message),
    }
}

/// What an answer other than 2xx says.
async fn refusal(answer: OutboundAnswer, idle: Duration) -> Fault {
    let status = answer.status();
    let retry_after = retry_after(&answer);
    let body = timeout(idle, answer.beginning(MAX_REFUSAL)).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let (kind, message) = words(&body);
    Fault { retry_after, ..Fault::said(Some(status), &kind, &message) }
}

/// `Retry-After` in seconds. Its form with a date is not read: no provider sends it, and it would trust their clock.
fn retry_after(answer: &OutboundAnswer) -> Option<Duration> {
    let seconds = answer.header("retry-after")?.trim().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The provider's code and message: `{"error":{"type","code","message"}}`, `{"error":"…"}`, `{"message":"…"}`, or
/// plain text.
fn words(body: &str) -> (String, String) {
    let Ok(document) = parse(body) else { return (String::new(), body.trim().to_owned()) };
    let error = document.get("error").unwrap_or(&document);
    let word = |name| error.get(name).and_then(Value::as_str);
    let kind = [word("code"), word("type")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let message = word("message").or_else(|| word("detail")).or_else(|| error.as_str());
    (kind, message.map_or_else(|| body.trim().to_owned(), str::to_owned))
}
