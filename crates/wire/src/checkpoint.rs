//! Checkpoints as JSON: the column `body` of the table `checkpoints` (engine b.1).

use nylorun_domain::checkpoint::{Answer, Checkpoint, Interaction, InteractionKind, Said, SavedCall, State, Wait};
use nylorun_domain::id::{CallId, InteractionId, InvocationId, TurnId};
use nylorun_domain::json::{Node, Value};

use crate::candidate::{Unreadable, elements, int, json, string, verbatim};
use crate::outcome;

/// `{version: 1, state: {turnStart, steps, calls}, answers, waits}`; turn and segment have columns of their own.
pub fn to_value(checkpoint: &Checkpoint) -> Value {
    Value::object([
        ("version", Value::from(1_i64)),
        ("state", state_to_value(&checkpoint.state)),
        ("answers", Value::Array(checkpoint.answers.iter().map(answer_to_value).collect())),
        ("waits", Value::Array(checkpoint.waits.iter().map(wait_to_value).collect())),
    ])
}

/// Reads [`to_value`]'s form.
pub fn from_node(turn_id: TurnId, segment: u32, node: Node<'_>) -> Result<Checkpoint, Unreadable> {
    if int(node, "version")? != 1 {
        return Err(Unreadable("a checkpoint of another version"));
    }
    Ok(Checkpoint {
        turn_id,
        segment,
        state: state_from_node(node.get("state").ok_or(Unreadable("state"))?)?,
        answers: elements(node, "answers")?.map(answer_from_node).collect::<Result<_, _>>()?,
        waits: elements(node, "waits")?.map(wait_from_node).collect::<Result<_, _>>()?,
    })
}

/// A question as events and the session view show it:
/// `{invocationId, callId, interaction: {id, kind, prompt}, wait: {interactionId}, status: "pending", toolName}`.
pub fn pending_to_value(interaction: &Interaction) -> Value {
    let asked = Value::object([
        ("id", Value::from(interaction.id.as_str())),
        ("kind", Value::from(interaction.kind.as_str())),
        ("prompt", Value::from(interaction.prompt.as_str())),
    ]);
    Value::object([
        ("invocationId", Value::from(interaction.invocation_id.as_str())),
        ("callId", Value::from(interaction.call_id.as_str())),
        ("interaction", asked),
        ("wait", Value::object([("interactionId", Value::from(interaction.id.as_str()))])),
        ("status", Value::from("pending")),
        ("toolName", Value::from(interaction.tool_name.as_str())),
    ])
}

/// Reads [`pending_to_value`]'s form.
pub(crate) fn pending_from_node(node: Node<'_>) -> Result<Interaction, Unreadable> {
    let asked = node.get("interaction").ok_or(Unreadable("interaction"))?;
    Ok(Interaction {
        id: InteractionId::from_trusted(string(asked, "id")?),
        invocation_id: InvocationId::from_trusted(string(node, "invocationId")?),
        call_id: CallId::from_trusted(string(node, "callId")?),
        tool_name: string(node, "toolName")?.into_owned(),
        kind: InteractionKind::from_wire(&string(asked, "kind")?),
        prompt: string(asked, "prompt")?.into_owned(),
    })
}

/// `{turnStart, steps, calls}`
pub(crate) fn state_to_value(state: &State) -> Value {
    Value::object([
        ("turnStart", Value::from(i64::try_from(state.turn_start).unwrap_or(i64::MAX))),
        ("steps", Value::from(i64::from(state.steps))),
        ("calls", Value::Array(state.calls.iter().map(call_to_value).collect())),
    ])
}

pub(crate) fn state_from_node(node: Node<'_>) -> Result<State, Unreadable> {
    Ok(State {
        turn_start: usize::try_from(int(node, "turnStart")?).map_err(|_| Unreadable("turnStart"))?,
        steps: u32::try_from(int(node, "steps")?).map_err(|_| Unreadable("steps"))?,
        calls: elements(node, "calls")?.map(call_from_node).collect::<Result<_, _>>()?,
    })
}

fn call_to_value(call: &SavedCall) -> Value {
    match call {
        SavedCall::Done(done) => Value::object([("done", outcome::tool_to_value(done))]),
        SavedCall::Waiting(interaction) => Value::object([("waiting", interaction_to_value(interaction))]),
    }
}

fn call_from_node(node: Node<'_>) -> Result<SavedCall, Unreadable> {
    match (node.get("done"), node.get("waiting")) {
        (Some(done), _) => outcome::tool_from_node(done).map(SavedCall::Done),
        (None, Some(interaction)) => interaction_from_node(interaction).map(SavedCall::Waiting),
        (None, None) => Err(Unreadable("the state of a call")),
    }
}

fn interaction_to_value(interaction: &Interaction) -> Value {
    Value::object([
        ("id", Value::from(interaction.id.as_str())),
        ("invocationId", Value::from(interaction.invocation_id.as_str())),
        ("callId", Value::from(interaction.call_id.as_str())),
        ("toolName", Value::from(interaction.tool_name.as_str())),
        ("kind", Value::from(interaction.kind.as_str())),
        ("prompt", Value::from(interaction.prompt.as_str())),
    ])
}

fn interaction_from_node(node: Node<'_>) -> Result<Interaction, Unreadable> {
    Ok(Interaction {
        id: InteractionId::from_trusted(string(node, "id")?),
        invocation_id: InvocationId::from_trusted(string(node, "invocationId")?),
        call_id: CallId::from_trusted(string(node, "callId")?),
        tool_name: string(node, "toolName")?.into_owned(),
        kind: InteractionKind::from_wire(&string(node, "kind")?),
        prompt: string(node, "prompt")?.into_owned(),
    })
}

pub(crate) fn answer_to_value(answer: &Answer) -> Value {
    Value::object([
        ("interactionId", Value::from(answer.interaction_id.as_str())),
        ("said", said_to_value(&answer.said)),
    ])
}

pub(crate) fn answer_from_node(node: Node<'_>) -> Result<Answer, Unreadable> {
    Ok(Answer {
        interaction_id: InteractionId::from_trusted(string(node, "interactionId")?),
        said: said_from_node(node.get("said").ok_or(Unreadable("said"))?)?,
    })
}

fn wait_to_value(wait: &Wait) -> Value {
    let mut members = vec![("interaction", interaction_to_value(&wait.interaction))];
    members.extend(wait.answer.as_ref().map(|said| ("said", said_to_value(said))));
    Value::object(members)
}

fn wait_from_node(node: Node<'_>) -> Result<Wait, Unreadable> {
    Ok(Wait {
        interaction: interaction_from_node(node.get("interaction").ok_or(Unreadable("interaction"))?)?,
        answer: node.get("said").map(said_from_node).transpose()?,
    })
}

fn said_to_value(said: &Said) -> Value {
    match said {
        Said::Approved => Value::object([("approved", Value::Bool(true))]),
        Said::Denied => Value::object([("approved", Value::Bool(false))]),
        Said::Value(value) => Value::object([("value", verbatim(value))]),
    }
}

fn said_from_node(node: Node<'_>) -> Result<Said, Unreadable> {
    match node.get("approved").and_then(Node::as_bool) {
        Some(true) => Ok(Said::Approved),
        Some(false) => Ok(Said::Denied),
        None => json(node, "value").map(Said::Value),
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::checkpoint::{Answer, Checkpoint, Interaction, InteractionKind, Said, SavedCall, State, Wait};
    use nylorun_domain::id::{CallId, InteractionId, InvocationId, TurnId};
    use nylorun_domain::json::{Document, Json};
    use nylorun_domain::tool::ToolOutcome;

    use super::{from_node, pending_to_value, to_value};

    fn interaction(id: &str, kind: InteractionKind) -> Interaction {
        Interaction {
            id: InteractionId::from_trusted(id),
            invocation_id: InvocationId::from_trusted("inv"),
            call_id: CallId::from_trusted("call"),
            tool_name: "deploy".to_owned(),
            kind,
            prompt: "Allow?".to_owned(),
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let (approval, other) = (InteractionKind::Approval, InteractionKind::Other("form".to_owned()));
        let checkpoint = Checkpoint {
            turn_id: TurnId::from_trusted("t"),
            segment: 3,
            state: State {
                turn_start: 7,
                steps: 52,
                calls: vec![
                    SavedCall::Done(ToolOutcome::Completed { output: Json::from_trusted("[ 1.0 ]") }),
                    SavedCall::Waiting(interaction("i1", approval.clone())),
                ],
            },
            answers: vec![
                Answer { interaction_id: InteractionId::from_trusted("i0"), said: Said::Denied },
                Answer {
                    interaction_id: InteractionId::from_trusted("i3"),
                    said: Said::Value(Json::from_trusted("\"\\ud800\"")),
                },
            ],
            waits: vec![
                Wait { interaction: interaction("i1", approval), answer: Some(Said::Approved) },
                Wait { interaction: interaction("i2", other), answer: None },
            ],
        };
        let stored = to_value(&checkpoint).to_json();
        let stored = Document::parse(stored.as_str()).unwrap();
        assert_eq!(from_node(checkpoint.turn_id.clone(), 3, stored.root()), Ok(checkpoint));
    }

    #[test]
    fn a_question_looks_like_this() {
        let expected = concat!(
            r#"{"invocationId":"inv","callId":"call","interaction":{"id":"i","kind":"approval","prompt":"Allow?"},"#,
            r#""wait":{"interactionId":"i"},"status":"pending","toolName":"deploy"}"#
        );
        assert_eq!(pending_to_value(&interaction("i", InteractionKind::Approval)).to_json().as_str(), expected);
    }
}
