//! A conversation: what was said, what was done, what failed.

use std::collections::HashMap;
use std::time::Duration;

use nylorun_client::{Delta, Event};
use serde_json::Value;

use super::super::term::{Style, Tone, duration, millis_of_iso, one_line, visible};
use super::record::{call_in_doubt, error, plain};
use super::streamed::{Piece, Streamed};

const INPUT_WIDTH: usize = 90;
const OUTCOME_WIDTH: usize = 90;

/// What a conversation must remember to go on.
#[derive(Default)]
pub(super) struct Conversation {
    streamed: Streamed,
    /// Whether the last line is not ended yet.
    open_line: bool,
    /// Calls that run, by id.
    calls: HashMap<String, Call>,
    /// The last text that was shown whole, to not show it again as the turn's output.
    last_text: String,
}

struct Call {
    /// `bash`, or `[2] bash` among several.
    label: String,
    asked_at: Option<i64>,
}

impl Conversation {
    /// What to print for a piece of text.
    pub(super) fn delta(&mut self, delta: &Delta, style: &Style) -> String {
        // What a delegated agent writes is its own business; its answer comes as the outcome of a call.
        if delta.agent.is_some() {
            return String::new();
        }
        match self.streamed.piece(delta) {
            Piece::Nothing => String::new(),
            Piece::More(text) => self.text(text),
            Piece::Anew(text) => self.given_up(style) + &self.text(text),
        }
    }

    /// What to print for an event.
    pub(super) fn event(&mut self, event: &Event, style: &Style) -> String {
        if event.payload.get("agent").is_some() && event.kind != "tool.completed" {
            return String::new();
        }
        match event.kind.as_str() {
            "command.message" | "message.steered" => self.line(&said(&event.payload, style)),
            "message.queued" => self.line(&style.paint(Tone::Faint, &waits(&event.payload))),
            "message.removed" => self.line(&style.paint(Tone::Faint, &dropped(&event.payload))),
            "command.approve" | "command.respond" => self.line(&style.paint(Tone::Faint, &answered(&event.payload))),
            "message.assistant" => self.assistant(event, style),
            "tool.completed" => self.tool(event, style),
            "model.failed" => {
                self.streamed = Streamed::default();
                self.line(&style.paint(Tone::Warn, &visible(&format!("! model: {}", error(&event.payload)))))
            }
            "turn.completed" => self.output(&event.payload),
            "turn.failed" => {
                let failed = format!("✗ the turn failed: {}", error(&event.payload));
                self.line(&style.paint(Tone::Bad, &visible(&failed)))
            }
            "turn.cancelled" => self.line(&style.paint(Tone::Warn, "the turn was cancelled")),
            "turn.paused" => self.line(&style.paint(Tone::Warn, &paused(&event.payload))),
            "effect.uncertain" => self.line(&style.paint(Tone::Warn, &uncertain(&event.payload))),
            "effect.settled" => self.line(&style.paint(Tone::Faint, &settled(&event.payload))),
            "sandbox.state" | "environment.state" => self.workspace(&event.payload, style),
            "sandbox.exec" | "environment.exec"
                if event.payload.get("outcome").is_some_and(|word| word == "uncertain") =>
            {
                self.line(&style.paint(Tone::Warn, &direct_call_in_doubt(&event.payload)))
            }
            // All other calls of `sandbox.exec` are shown as the tools that they are.
            _ => String::new(),
        }
    }

    /// Ends the line that is being written, if any.
    pub(super) fn new_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.open_line) { "\n" } else { "" }
    }

    fn text(&mut self, text: &str) -> String {
        if !text.is_empty() {
            self.open_line = !text.ends_with('\n');
        }
        visible(text)
    }

    fn line(&mut self, line: &str) -> String {
        format!("{}{line}\n", self.new_line())
    }

    fn given_up(&mut self, style: &Style) -> String {
        self.line("") + &self.line(&style.paint(Tone::Faint, "(that answer was given up; once more)"))
    }

    fn assistant(&mut self, event: &Event, style: &Style) -> String {
        let member = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        let text = member("text");
        let mut shown = match self.streamed.whole(member("invocationId"), text) {
            Piece::Nothing => String::new(),
            Piece::More(rest) => self.text(rest),
            Piece::Anew(text) => self.given_up(style) + &self.text(text),
        };
        shown.push_str(self.new_line());
        text.clone_into(&mut self.last_text);
        let calls = event.payload.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (at, call) in calls.iter().enumerate() {
            let name = visible(&call.get("name").map(plain).unwrap_or_default());
            let label = if calls.len() > 1 { format!("[{}] {name}", at + 1) } else { name };
            let input = input_gist(call.get("input").unwrap_or(&Value::Null));
            shown.push_str(format!("{} {label}  {input}", style.paint(Tone::Accent, "→")).trim_end());
            shown.push('\n');
            let asked_at = event.time().and_then(millis_of_iso);
            self.calls.insert(call.get("callId").map(plain).unwrap_or_default(), Call { label, asked_at });
        }
        shown
    }

    fn tool(&mut self, event: &Event, style: &Style) -> String {
        let payload = &event.payload;
        let Some(call) = self.calls.remove(&payload.get("callId").map(plain).unwrap_or_default()) else {
            return String::new();
        };
        let took = event.time().and_then(millis_of_iso).zip(call.asked_at);
        let took = took.and_then(|(ended, asked)| u64::try_from(ended - asked).ok()).map(Duration::from_millis);
        let took = took.map(duration).unwrap_or_default();
        let (mark, gist) = match payload.get("output") {
            Some(output) => output_gist(output),
            None => (Mark::Failed, error(payload)),
        };
        let mark = match mark {
            Mark::Done => style.paint(Tone::Good, "✓"),
            Mark::Failed => style.paint(Tone::Bad, "✗"),
        };
        let line =
            format!("{mark} {}  {}  {}", call.label, style.paint(Tone::Faint, &took), one_line(&gist, OUTCOME_WIDTH));
        self.line(line.trim_end())
    }

    /// The turn's output, when it is not the text that was just shown.
    fn output(&mut self, payload: &Value) -> String {
        let output = payload.get("output").unwrap_or(&Value::Null);
        match output {
            Value::Null => self.new_line().to_owned(),
            Value::String(text) if *text == self.last_text || text.is_empty() => self.new_line().to_owned(),
            Value::String(text) => self.line(&visible(text)),
            other => {
                let same = serde_json::from_str::<Value>(&self.last_text).is_ok_and(|shown| shown == *other);
                let pretty = serde_json::to_string_pretty(other).unwrap_or_default();
                if same { self.new_line().to_owned() } else { self.line(&visible(&pretty)) }
            }
        }
    }

    /// Only what went wrong with the workspace: a start that went well is not news.
    fn workspace(&mut self, payload: &Value, style: &Style) -> String {
        let troubles = ["note", "error"].map(|name| payload.get(name).map(plain).unwrap_or_default());
        let troubles = troubles.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        if troubles.is_empty() {
            return String::new();
        }
        self.line(&style.paint(Tone::Warn, &visible(&format!("! workspace: {troubles}"))))
    }
}

enum Mark {
    Done,
    Failed,
}

fn said(payload: &Value, style: &Style) -> String {
    let said = ["content", "data", "parts"].iter().find_map(|name| payload.get(*name)).map(plain).unwrap_or_default();
    style.paint(Tone::Strong, &format!("> {}", visible(said.trim_end()).replace('\n', "\n  ")))
}

/// The input of a call: its one telling member, or all of it.
fn input_gist(input: &Value) -> String {
    let telling = ["command", "pattern", "path", "query", "url", "task"];
    let told = telling.iter().find_map(|name| input.get(*name)?.as_str());
    let gist = match told {
        Some(text) => text.to_owned(),
        None if input.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => plain(input),
    };
    one_line(&gist, INPUT_WIDTH)
}

/// The output of a tool: of a command, its exit code when it is not 0, and what it printed.
fn output_gist(output: &Value) -> (Mark, String) {
    let Some(exit_code) = output.get("exitCode").and_then(Value::as_i64) else { return (Mark::Done, plain(output)) };
    let text = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let printed = if text("stdout").is_empty() { text("stderr") } else { text("stdout") };
    let timed_out = output.get("timedOut").and_then(Value::as_bool) == Some(true);
    match exit_code {
        0 => (Mark::Done, printed),
        _ if timed_out => (Mark::Failed, labelled("timed out", &printed)),
        code => (Mark::Failed, labelled(&format!("exit {code}"), &printed)),
    }
}

fn labelled(label: &str, printed: &str) -> String {
    if printed.is_empty() { label.to_owned() } else { format!("{label}: {printed}") }
}

fn waits(payload: &Value) -> String {
    let steers = payload.get("mode").is_some_and(|mode| mode == "steer");
    let when = if steers { "the turn reads it at its next step" } else { "it begins the next turn" };
    let said = ["content", "data", "parts"].iter().find_map(|name| payload.get(*name)).map(plain).unwrap_or_default();
    format!("· waits: {} ({when})", one_line(&said, INPUT_WIDTH))
}

fn dropped(payload: &Value) -> String {
    let reason = payload.get("reason").map(plain).unwrap_or_default();
    visible(&format!("· a message that waited is gone ({reason})"))
}

fn answered(payload: &Value) -> String {
    let answer = match payload.get("approved").and_then(Value::as_bool) {
        Some(true) => "allowed".to_owned(),
        Some(false) => "not allowed".to_owned(),
        None => one_line(&payload.get("value").map(plain).unwrap_or_default(), INPUT_WIDTH),
    };
    format!("· answered: {answer}")
}

fn paused(payload: &Value) -> String {
    let interactions = payload.get("interactions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let asks = interactions.iter().filter_map(|entry| entry.get("interaction")).map(|interaction| {
        let text = |name: &str| interaction.get(name).map(plain).unwrap_or_default();
        format!("{} {}", text("kind"), text("prompt")).trim().to_owned()
    });
    let asks = asks.collect::<Vec<_>>().join("; ");
    visible(&format!("‖ the turn waits for an answer: {asks}"))
}

fn uncertain(payload: &Value) -> String {
    let message = payload.get("message").map(plain).unwrap_or_default();
    let what = call_in_doubt(payload).map_or_else(|| "a step".to_owned(), |call| one_line(&call, INPUT_WIDTH));
    format!("? it is unknown whether this happened: {what} ({})", visible(&message))
}

/// Only a call of the application itself is lost in this way; a turn's is told by `effect.uncertain`.
fn direct_call_in_doubt(payload: &Value) -> String {
    let text = |name: &str| payload.get(name).map(plain).unwrap_or_default();
    let call = format!("{} {}{}", text("tool"), text("command"), text("path"));
    format!("? it is unknown whether this call of the application happened: {}", one_line(&call, INPUT_WIDTH))
}

fn settled(payload: &Value) -> String {
    let outcome = payload.get("outcome").map(plain).unwrap_or_default();
    format!("the outcome was settled: {}", one_line(&outcome, OUTCOME_WIDTH))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::{delta, event};
    use super::*;

    #[test]
    fn an_attempt_that_was_given_up_is_said() {
        let mut conversation = Conversation::default();
        let style = Style::plain();
        let mut text = conversation.delta(&delta(1, 0, "Wro"), &style);
        text += &conversation.delta(&delta(2, 0, "Right"), &style);
        text += &conversation.event(
            &event(1, "message.assistant", &json!({"invocationId": "i1", "text": "Right.", "toolCalls": []})),
            &style,
        );
        assert_eq!(text, "Wro\n\n(that answer was given up; once more)\nRight.\n");
    }

    #[test]
    fn what_may_have_happened_is_named() {
        let style = Style::plain();
        let shown = |kind: &str, payload: &Value| Conversation::default().event(&event(1, kind, payload), &style);
        let mark = json!({"effectId": "e1", "toolName": "write", "path": "a.txt", "message": "lost"});
        assert_eq!(shown("effect.uncertain", &mark), "? it is unknown whether this happened: write a.txt (lost)\n");
        let exec = |outcome: &str| json!({"tool": "bash", "command": "make", "outcome": outcome, "durationMs": 1});
        assert_eq!(
            shown("sandbox.exec", &exec("uncertain")),
            "? it is unknown whether this call of the application happened: bash make\n"
        );
        assert_eq!(shown("sandbox.exec", &exec("completed")), "");
    }

    #[test]
    fn output_is_shown_once() {
        let style = Style::plain();
        let shown = |text: &str, output: &Value| {
            let mut conversation = Conversation::default();
            let said = json!({"invocationId": "i1", "text": text, "toolCalls": []});
            conversation.event(&event(1, "message.assistant", &said), &style);
            conversation.event(&event(2, "turn.completed", &json!({ "output": output })), &style)
        };
        assert_eq!(shown("done", &json!("done")), "");
        assert_eq!(shown("", &json!("done")), "done\n");
        assert_eq!(shown("{\"a\": 1}", &json!({"a": 1})), "");
        assert_eq!(shown("", &json!({"a": 1})), "{\n  \"a\": 1\n}\n");
        assert_eq!(shown("done", &Value::Null), "");
    }

    #[test]
    fn inputs_and_outputs_have_their_gist() {
        assert_eq!(input_gist(&json!({"command": "ls\n-la", "timeout": 5})), "ls -la");
        assert_eq!(input_gist(&json!({})), "");
        assert_eq!(input_gist(&json!({"n": 1})), r#"{"n":1}"#);
        assert_eq!(output_gist(&json!("text")).1, "text");
        assert_eq!(
            output_gist(&json!({"exitCode": 124, "timedOut": true, "stdout": "", "stderr": "slow"})).1,
            "timed out: slow"
        );
    }

    #[test]
    fn what_a_tool_prints_cannot_reach_the_terminal() {
        let mut conversation = Conversation::default();
        let style = Style::plain();
        let call = json!({"invocationId": "i1", "text": "\u{1b}[2J", "toolCalls": [
            {"callId": "1", "name": "b\u{7}", "input": {"command": "\u{1b}]0;x\u{7}"}}]});
        let mut text = conversation.event(&event(1, "message.assistant", &call), &style);
        let done = json!({"callId": "1", "output": "\u{9b}31m"});
        text += &conversation.event(&event(2, "tool.completed", &done), &style);
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
    }

    #[test]
    fn a_workspace_is_only_mentioned_when_something_is_wrong() {
        let mut conversation = Conversation::default();
        let state = |payload: &Value| event(1, "sandbox.state", payload);
        assert_eq!(conversation.event(&state(&json!({"state": "running", "backend": "virtual"})), &Style::plain()), "");
        let lost = state(&json!({"state": "running", "lost": true, "note": "its files are gone"}));
        assert_eq!(conversation.event(&lost, &Style::plain()), "! workspace: its files are gone\n");
    }
}
