//! One line an event.

use nylorun_client::Event;
use serde_json::Value;

use super::super::term::{Style, Tone, one_line, visible};

const GIST_WIDTH: usize = 120;

/// The line of an event: number, time, type, gist.
pub(super) fn line(event: &Event, style: &Style) -> String {
    let seq = event.seq().map(|seq| seq.to_string()).unwrap_or_default();
    let time = event.time().unwrap_or_default().replace('T', " ");
    let time = visible(time.trim_end_matches('Z'));
    let kind = style.paint(tone(event), &format!("{:<20}", visible(&event.kind)));
    let head = format!("{seq:>6}  {}", style.paint(Tone::Faint, &time));
    format!("{head}  {kind}  {}", gist(event)).trim_end().to_owned() + "\n"
}

fn tone(event: &Event) -> Tone {
    match event.kind.as_str() {
        "turn.failed" | "model.failed" => Tone::Bad,
        "turn.cancelled" | "turn.paused" | "effect.uncertain" => Tone::Warn,
        "turn.completed" => Tone::Good,
        _ => Tone::Accent,
    }
}

/// What an event says, on one line.
fn gist(event: &Event) -> String {
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).map(plain).unwrap_or_default();
    let gist = match event.kind.as_str() {
        "command.message" | "message.steered" => ["content", "data", "parts"].map(text).concat(),
        "message.queued" => format!("{}  {}", text("mode"), ["content", "data", "parts"].map(text).concat()),
        "message.removed" => format!("{}  {}", text("messageId"), text("reason")),
        "command.approve" => {
            let approved = payload.get("approved").and_then(Value::as_bool).unwrap_or_default();
            format!("{}  {}", if approved { "approved" } else { "denied" }, text("interactionId"))
        }
        "command.respond" => format!("{}  {}", text("value"), text("interactionId")),
        "turn.completed" => text("output"),
        "turn.failed" => error(payload),
        "turn.cancelled" => text("reason"),
        "message.assistant" => format!("{} {}", text("text"), calls(payload)),
        "model.failed" => format!("{}: {}", text("code"), text("message")),
        "tool.completed" => format!("{}  {}", text("toolName"), outcome(payload)),
        "effect.uncertain" => {
            let what = call_in_doubt(payload).unwrap_or_else(|| text("effectId"));
            format!("{what}  {}", text("message"))
        }
        "effect.settled" => format!("{}  {}", text("effectId"), text("outcome")),
        "sandbox.state" | "environment.state" => ["state", "backend", "note", "error"].map(text).join(" "),
        "sandbox.exec" | "environment.exec" => {
            let what = format!("{} {}{}", text("tool"), text("command"), text("path"));
            format!("{what}  {}  {} ms", text("outcome"), text("durationMs"))
        }
        _ => plain(payload),
    };
    one_line(&gist, GIST_WIDTH)
}

/// The call that an `effect.uncertain` names: the tool, and what it was to do.
pub(crate) fn call_in_doubt(payload: &Value) -> Option<String> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let subject = text("command").or_else(|| text("path")).unwrap_or_default();
    Some(format!("{} {subject}", text("toolName")?).trim_end().to_owned())
}

fn calls(payload: &Value) -> String {
    let calls = payload.get("toolCalls").and_then(Value::as_array);
    let name = |call: &Value| format!("→ {}", call.get("name").map(plain).unwrap_or_default());
    calls.map(|calls| calls.iter().map(name).collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

fn outcome(payload: &Value) -> String {
    match payload.get("output") {
        Some(output) => plain(output),
        None => error(payload),
    }
}

/// `code: message` of a payload's error, as far as there are any.
pub(super) fn error(payload: &Value) -> String {
    let error = payload.get("error").unwrap_or(payload);
    let parts = ["code", "message"].map(|name| error.get(name).map(plain).unwrap_or_default());
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// A string as it is, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::event;
    use super::*;

    #[test]
    fn each_type_has_its_gist() {
        let cases = [
            ("command.message", json!({"content": "hi\nthere"}), "hi there"),
            ("command.message", json!({"data": {"a": 1}}), r#"{"a":1}"#),
            (
                "message.assistant",
                json!({"text": "ok", "toolCalls": [{"name": "bash"}, {"name": "read"}]}),
                "ok → bash → read",
            ),
            ("tool.completed", json!({"toolName": "bash", "output": "x"}), "bash x"),
            ("tool.completed", json!({"toolName": "t", "error": {"code": "c", "message": "m"}}), "t c: m"),
            ("turn.failed", json!({"message": "only text"}), "only text"),
            ("effect.uncertain", json!({"effectId": "e1", "message": "lost"}), "e1 lost"),
            (
                "effect.uncertain",
                json!({"effectId": "e1", "message": "lost", "toolName": "bash", "command": "make all"}),
                "bash make all lost",
            ),
            (
                "sandbox.exec",
                json!({"tool": "bash", "command": "ls", "outcome": "completed", "durationMs": 5}),
                "bash ls completed 5 ms",
            ),
            ("sandbox.state", json!({"state": "running", "backend": "virtual"}), "running virtual"),
            ("message.queued", json!({"messageId": "m", "mode": "queue", "content": "and then"}), "queue and then"),
            ("message.removed", json!({"messageId": "m", "reason": "cancelled"}), "m cancelled"),
            ("command.approve", json!({"interactionId": "i", "approved": false}), "denied i"),
            ("command.respond", json!({"interactionId": "i", "value": 2}), "2 i"),
            ("something.new", json!({"x": [1]}), r#"{"x":[1]}"#),
        ];
        for (kind, payload, expected) in cases {
            assert_eq!(gist(&event(1, kind, &payload)), expected, "{kind}");
        }
    }
}
