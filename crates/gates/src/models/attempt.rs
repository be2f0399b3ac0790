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
    let asked = retry_after(&answer);
    let body = timeout(idle, answer.beginning(MAX_REFUSAL)).await.unwrap_or_default();
    let said = Refusal::read(&String::from_utf8_lossy(&body));
    let fault = Fault::said(Some(status), &said.kind, &said.message);
    // Google says "quota" of its limits per minute too, and then how long to wait.
    let retryable = fault.retryable || (fault.code == ModelFailureCode::RateLimited && said.retry_after.is_some());
    Fault { retryable, retry_after: asked.or(said.retry_after), ..fault }
}

/// `Retry-After` in seconds, or its sibling in milliseconds. Its form with a date is not read: no provider sends it,
/// and it would trust their clock.
fn retry_after(answer: &OutboundAnswer) -> Option<Duration> {
    let number = |name| answer.header(name)?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1_000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What the body of a refusal says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Refusal {
    /// The provider's codes.
    kind: String,
    /// Its words.
    message: String,
    /// How long it asks to wait, when it says so in the body.
    retry_after: Option<Duration>,
}

impl Refusal {
    /// Reads `{"error":{"type","code","status","message"}}`, `{"error":"…"}`, `{"message":"…"}`, a list of one of
    /// these, or plain text.
    fn read(body: &str) -> Self {
        let Ok(document) = parse(body) else {
            return Self { message: body.trim().to_owned(), ..Self::default() };
        };
        let document = document.as_array().and_then(<[Value]>::first).unwrap_or(&document);
        let error = document.get("error").unwrap_or(document);
        let word = |name| error.get(name).and_then(Value::as_str);
        let kind = [word("code"), word("type"), word("status")].into_iter().flatten().collect::<Vec<_>>();
        let message = word("message").or_else(|| word("detail")).or_else(|| error.as_str());
        // What the provider behind a router said, in its own words.
        let raw = error.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str);
        let message = [message.unwrap_or(body.trim())].into_iter().chain(raw).collect::<Vec<_>>();
        Self { kind: kind.join(" "), message: message.join(": "), retry_after: retry_delay(error) }
    }
}

/// Google's `RetryInfo`: a delay such as `"34.5s"`. A limit per day passes within no delay that is worth waiting for.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details").and_then(Value::as_array)?;
    let violations = details.iter().filter_map(|detail| detail.get("violations")).filter_map(Value::as_array).flatten();
    let mut quotas = violations.filter_map(|violation| violation.get("quotaId")).filter_map(Value::as_str);
    if quotas.any(|quota| quota.contains("PerDay")) {
        return None;
    }
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")).and_then(Value::as_str)?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (String, String, Option<f64>) {
        let Refusal { kind, message, retry_after } = Refusal::read(body);
        (kind, message, retry_after.map(|delay| delay.as_secs_f64()))
    }

    #[test]
    fn every_form_of_a_refusal_is_read() {
        let table = [
            (r#"{"error":{"type":"t","code":"c","message":"m"}}"#, "c t", "m"),
            (r#"{"error":{"code":429,"status":"S","message":"m"}}"#, "S", "m"),
            (r#"[{"error":{"code":400,"status":"S","message":"m"}}]"#, "S", "m"),
            (r#"{"error":"m"}"#, "", "m"),
            (r#"{"message":"m"}"#, "", "m"),
            (r#"{"detail":"m"}"#, "", "m"),
            (r#"{"error":{"code":400,"message":"m","metadata":{"raw":"too long"}}}"#, "", "m: too long"),
            (r#"{"other":1}"#, "", r#"{"other":1}"#),
            ("[]", "", "[]"),
            (" plain ", "", "plain"),
        ];
        for (body, kind, message) in table {
            assert_eq!(read(body), (kind.to_owned(), message.to_owned(), None), "{body}");
        }
    }

    #[test]
    fn googles_delay_is_read_unless_the_day_is_over() {
        let body = |details: &str| format!(r#"{{"error":{{"message":"m","details":[{details}]}}}}"#);
        let delay = |details: &str| read(&body(details)).2;
        assert_eq!(delay(r#"{"@type":"x"},{"retryDelay":"34.5s"}"#), Some(34.5));
        assert_eq!(delay(r#"{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"3s"}"#), Some(3.0));
        assert_eq!(delay(r#"{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"3s"}"#), None);
        for bad in [r#"{"retryDelay":"soon"}"#, r#"{"retryDelay":"-1s"}"#, r#"{"retryDelay":7}"#, "1"] {
            assert_eq!(delay(bad), None, "{bad}");
        }
    }
}
