//! Events as people read them: in a conversation, or as the lines of a record.

mod conversation;
mod record;
mod streamed;

use std::io::{self, Write};

use nylorun_client::{Delta, Event, Update};

use super::term::{Style, Tone, duration, visible};
use conversation::Conversation;
pub(crate) use record::{call_in_doubt, plain};

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Text as the model writes it, tools as they run, failures.
    Conversation,
    /// One line an event: number, time, type and the gist.
    Record,
    /// One line an event: its JSON exactly as it came.
    Json,
}

/// Prints events as they come, each at once.
pub(crate) struct EventPrinter<W> {
    out: W,
    style: Style,
    view: View,
    conversation: Conversation,
    /// Whether the connection is lost, and that has been said.
    away: bool,
}

impl<W: Write> EventPrinter<W> {
    /// A printer that writes to `out`.
    pub(crate) fn new(out: W, style: Style, view: View) -> Self {
        Self { out, style, view, conversation: Conversation::default(), away: false }
    }

    /// The colours of its output.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Prints whatever following gave: an event, a delta, or that the connection was lost.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn update(&mut self, update: &Update) -> io::Result<()> {
        match update {
            Update::Event(event) => {
                self.away = false;
                self.event(event)
            }
            Update::Delta(delta) => self.delta(delta),
            Update::Interrupted { wait, cause } => {
                let again = if wait.is_zero() { "now".to_owned() } else { format!("in {}", duration(*wait)) };
                let cause = if std::mem::replace(&mut self.away, true) { "still nothing" } else { cause };
                self.notice(&format!("{cause}; connecting again {again}"))
            }
        }
    }

    /// Prints an event of the record.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        let text = match self.view {
            View::Conversation => self.conversation.event(event, &self.style),
            View::Record => record::line(event, &self.style),
            View::Json => format!("{}\n", event.text),
        };
        self.write(&text)
    }

    /// Prints text that a model is writing. Only a conversation shows it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match self.view {
            View::Conversation => {
                let text = self.conversation.delta(delta, &self.style);
                self.write(&text)
            }
            View::Record | View::Json => Ok(()),
        }
    }

    /// Prints something that is no event, on a line of its own. Where standard output is JSON for a program, the people
    /// at standard error are told.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        self.advice(&self.style.paint(Tone::Faint, &visible(text)))
    }

    /// Prints lines of ours that are coloured already, as a notice is printed.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn advice(&mut self, text: &str) -> io::Result<()> {
        if self.view == View::Json {
            // Nobody can be told when standard error is gone.
            let _ = writeln!(io::stderr(), "{}", text.trim_end());
            return Ok(());
        }
        let text = format!("{}{}\n", self.conversation.new_line(), text.trim_end());
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
pub(crate) mod sample {
    //! Updates for tests.

    use nylorun_client::{Delta, Event};
    use serde_json::{Value, json};

    /// An event at this second.
    pub(crate) fn event(second: u32, kind: &str, payload: &Value) -> Event {
        let envelope = json!({"cursor": format!("c{second}"), "type": kind, "seq": second, "turnId": "t1",
            "time": format!("2026-01-01T00:00:{second:02}.250Z")});
        let mut document = envelope.clone();
        document["payload"] = payload.clone();
        Event {
            cursor: format!("c{second}"),
            kind: kind.into(),
            payload: payload.clone(),
            envelope: envelope.as_object().unwrap().clone(),
            text: document.to_string(),
        }
    }

    /// A delta of one invocation.
    pub(crate) fn delta(attempt: u64, index: u64, text: &str) -> Delta {
        let (session_id, turn_id, invocation_id) = ("s".into(), "t1".into(), "i1".into());
        Delta { session_id, turn_id, epoch: 1, invocation_id, attempt, index, text: text.into(), agent: None }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn printed(view: View, updates: &[Update]) -> String {
        let mut out = Vec::new();
        let mut printer = EventPrinter::new(&mut out, Style::plain(), view);
        for update in updates {
            printer.update(update).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    fn lost() -> Update {
        Update::Interrupted { wait: Duration::from_millis(250), cause: "the connection was lost".into() }
    }

    #[test]
    fn a_turn_reads_as_a_conversation() {
        let call = |id: &str, command: &str| json!({"callId": id, "name": "bash", "input": {"command": command}});
        let done = |id: &str, output: serde_json::Value| json!({"callId": id, "toolName": "bash", "output": output});
        let updates = [
            Update::Event(sample::event(0, "command.message", &json!({"type": "message", "content": "look\naround"}))),
            Update::Delta(sample::delta(1, 0, "Let me ")),
            Update::Delta(sample::delta(1, 1, "look.")),
            Update::Event(sample::event(
                1,
                "message.assistant",
                &json!({"invocationId": "i1", "text": "Let me look.",
                "toolCalls": [call("1", "ls -la"), call("2", "false")]}),
            )),
            Update::Event(sample::event(2, "sandbox.exec", &json!({"tool": "bash"}))),
            Update::Event(sample::event(
                2,
                "tool.completed",
                &done("2", json!({"exitCode": 1, "stdout": "", "stderr": "no"})),
            )),
            Update::Event(sample::event(
                3,
                "tool.completed",
                &done("1", json!({"exitCode": 0, "stdout": "a\nb\n", "stderr": ""})),
            )),
            Update::Event(sample::event(
                4,
                "message.assistant",
                &json!({"invocationId": "i2", "text": "Two files.", "toolCalls": []}),
            )),
            Update::Event(sample::event(4, "turn.completed", &json!({"output": "Two files."}))),
        ];
        let expected = "\
> look
  around
Let me look.
→ [1] bash  ls -la
→ [2] bash  false
✗ [2] bash  1.0 s  exit 1: no
✓ [1] bash  2.0 s  a b
Two files.
";
        assert_eq!(printed(View::Conversation, &updates), expected);
    }

    #[test]
    fn an_interruption_does_not_break_what_is_being_written() {
        let updates = [
            Update::Delta(sample::delta(1, 0, "One ")),
            lost(),
            lost(),
            Update::Event(sample::event(
                1,
                "message.assistant",
                &json!({"invocationId": "i1", "text": "One two.", "toolCalls": []}),
            )),
        ];
        assert_eq!(
            printed(View::Conversation, &updates),
            "One \nthe connection was lost; connecting again in 250 ms\n\
             still nothing; connecting again in 250 ms\ntwo.\n"
        );
    }

    #[test]
    fn json_is_the_event_as_it_came_and_nothing_else() {
        let event = sample::event(1, "turn.completed", &json!({"output": "x"}));
        let text = event.text.clone() + "\n";
        assert_eq!(printed(View::Json, &[lost(), Update::Delta(sample::delta(1, 0, "x")), Update::Event(event)]), text);
    }

    #[test]
    fn a_record_has_a_line_an_event() {
        let event =
            sample::event(7, "turn.failed", &json!({"error": {"code": "model.auth", "message": "no\u{1b}key"}}));
        assert_eq!(
            printed(View::Record, &[Update::Event(event), lost()]),
            "     7  2026-01-01 00:00:07.250  turn.failed           model.auth: no␛key\n\
             the connection was lost; connecting again in 250 ms\n"
        );
    }
}
