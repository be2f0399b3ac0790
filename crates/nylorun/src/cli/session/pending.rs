//! What a paused turn asks, with the call that waits for the answer, and how to answer.

use std::collections::HashMap;

use nylorun_client::{Error, Event, Session, SessionView};
use serde_json::Value;

use super::super::show::plain;
use super::super::term::{Style, Tone, visible};

/// A question of a paused turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// By which it is answered.
    pub(crate) id: String,
    /// What kind of answer it wants.
    pub(crate) kind: QuestionKind,
    prompt: String,
    tool: String,
    call_id: String,
}

/// What kind of answer a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionKind {
    /// Whether a call may run.
    Approval,
    /// A value.
    Value,
}

/// The questions of a session, as its view has them.
pub(crate) fn questions(view: &SessionView) -> Vec<Question> {
    let waits = view.waits.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    waits.iter().filter_map(question).collect()
}

fn question(wait: &Value) -> Option<Question> {
    let text = |value: &Value, name: &str| value.get(name).map(plain).unwrap_or_default();
    let interaction = wait.get("interaction")?;
    let kind = match interaction.get("kind").and_then(Value::as_str)? {
        "approval" => QuestionKind::Approval,
        _ => QuestionKind::Value,
    };
    Some(Question {
        id: interaction.get("id")?.as_str()?.to_owned(),
        kind,
        prompt: text(interaction, "prompt"),
        tool: text(wait, "toolName"),
        call_id: text(wait, "callId"),
    })
}

/// What the model wants to call with: the view names the call only by its id.
#[derive(Debug, Default)]
pub(crate) struct Inputs(HashMap<String, Value>);

impl Inputs {
    /// Takes note of the calls that an event asks for.
    pub(crate) fn note(&mut self, event: &Event) {
        if event.kind != "message.assistant" {
            return;
        }
        let calls = event.payload.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            let id = call.get("callId").map(plain).unwrap_or_default();
            self.0.insert(id, call.get("input").cloned().unwrap_or_default());
        }
    }

    /// Those of a session's active turn, when it asks something.
    ///
    /// # Errors
    /// What the server refused, or that it could not be reached.
    pub(crate) async fn read(session: &Session, view: &SessionView) -> Result<Self, Error> {
        let mut inputs = Self::default();
        if !questions(view).is_empty() {
            let events = session.history(None, None).await?.items;
            events
                .iter()
                .filter(|event| event.turn_id() == view.active_turn_id.as_deref())
                .for_each(|event| inputs.note(event));
        }
        Ok(inputs)
    }
}

/// The question and all of the call's input: who allows a call must have seen what it does.
pub(crate) fn asked(question: &Question, inputs: &Inputs, style: &Style) -> String {
    let head = style.paint(Tone::Warn, &visible(&format!("The turn asks: {}", question.prompt)));
    let input = inputs.0.get(&question.call_id).map(|input| match input {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    });
    let call = format!("{} {}", question.tool, input.unwrap_or_else(|| "(its input is in the record)".to_owned()));
    format!("\n{head}\n  {}\n", visible(call.trim_end()).replace('\n', "\n  "))
}

/// The commands that answer it.
pub(crate) fn answers(session: &str, question: &Question, style: &Style) -> String {
    let command = |verb: &str, rest: &str| {
        style.paint(Tone::Accent, &visible(&format!("nylorun session {verb} {session} {}{rest}", question.id)))
    };
    match question.kind {
        QuestionKind::Approval => format!(
            "  {}          it may run\n  {}   it may not, and the model is told\n",
            command("approve", ""),
            command("approve", " --deny")
        ),
        QuestionKind::Value => format!("  {}   the answer: JSON, or else text\n", command("respond", " VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::show::sample::event;
    use super::*;

    fn view() -> SessionView {
        let wait = |id: &str, call: &str, kind: &str| {
            json!({"invocationId": "inv", "callId": call, "toolName": "deploy", "status": "pending",
                "interaction": {"id": id, "kind": kind, "prompt": "Allow\u{1b}[2J it?"}})
        };
        let waits = json!([wait("i1", "c1", "approval"), wait("i2", "c2", "form"), {"unknown": true}]);
        let view = json!({"id": "s1", "agentId": "a", "ownerUserId": "me", "manifestHash": "h", "activeTurnId": "t1",
            "implementationVersion": "dev", "status": "paused", "waits": waits});
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_question_shows_all_of_its_call_and_how_to_answer() {
        let questions = questions(&view());
        assert_eq!(questions.len(), 2);
        let mut inputs = Inputs::default();
        let long = "x".repeat(500);
        let calls = json!([{"callId": "c1", "name": "deploy", "input": {"to": long, "then": "\u{1b}]0;"}}]);
        inputs.note(&event(1, "message.assistant", &json!({"text": "", "toolCalls": calls})));
        let style = Style::plain();
        let expected = format!(
            "\nThe turn asks: Allow␛[2J it?\n  deploy {{\n    \"to\": \"{long}\",\n    \"then\": \"\\u001b]0;\"\n  }}\n"
        );
        // Members may stand in another order.
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&asked(&questions[0], &inputs, &style)), lines(&expected));
        assert!(asked(&questions[1], &inputs, &style).ends_with("\n  deploy (its input is in the record)\n"));
        assert_eq!(
            answers("s1", &questions[0], &style),
            "  nylorun session approve s1 i1          it may run\n  \
             nylorun session approve s1 i1 --deny   it may not, and the model is told\n"
        );
        assert_eq!(
            answers("s1", &questions[1], &style),
            "  nylorun session respond s1 i2 VALUE   the answer: JSON, or else text\n"
        );
    }
}
