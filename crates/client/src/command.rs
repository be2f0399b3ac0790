//! Commands to a session, and settling of uncertain effects (api 2.4; decisions, Settling).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::request_id;
use crate::error::Error;

/// A command, with the key that makes repeating it harmless.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// 1 to 256 characters, chosen by the caller. The same key with the same content is one command.
    pub idempotency_key: String,
    /// What to do.
    pub kind: CommandKind,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandKind {
    /// Starts a turn.
    Message(Content),
    /// Starts a turn, or waits while one is active and begins the next.
    Queue(Content),
    /// Starts a turn, or is read by the active one at its next step.
    Steer(Content),
    /// Answers an interaction of kind `approval`.
    Approve {
        /// Which.
        interaction_id: String,
        /// The answer.
        approval: Approval,
    },
    /// Answers an interaction of another kind.
    Respond {
        /// Which.
        interaction_id: String,
        /// The answer.
        value: Value,
    },
    /// Ends the turn that runs.
    Cancel {
        /// Why, for the record.
        reason: Option<String>,
    },
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text, at least one character.
    Text(String),
    /// Any JSON, for agents that take data.
    Data(Value),
    /// 1 to 32 parts: `{type: "text", text}` or `{type: "file", artifactId, version?}`.
    Parts(Vec<Value>),
}

/// The answer to an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Do it.
    Approved,
    /// Don't.
    Denied,
}

/// Answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// `accepted`.
    pub status: String,
    /// The turn that the command began or went on with.
    pub turn_id: Option<String>,
    /// Cursor of the event that the command wrote: following from here misses nothing after it.
    pub cursor: Option<String>,
    /// Request id of the first time that this command was sent.
    pub request_id: String,
}

/// What became of an uncertain effect, with the key that makes repeating it harmless.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The effect.
    pub effect_id: String,
    /// As of a command.
    pub idempotency_key: String,
    /// What became of it.
    pub settlement: Settlement,
}

/// What became of an uncertain effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// It happened, with this result.
    Value(Value),
    /// It failed, or it did not happen and shall not.
    Error(String),
    /// It did not happen: run it again.
    Retry,
}

impl Command {
    /// A command with a fresh idempotency key.
    ///
    /// # Errors
    /// [`Error::Setup`] when the system gives no random numbers.
    pub fn new(kind: CommandKind) -> Result<Self, Error> {
        Ok(Self { idempotency_key: request_id()?, kind })
    }

    /// A message of text, with a fresh idempotency key.
    ///
    /// # Errors
    /// [`Error::Setup`] when the system gives no random numbers.
    pub fn text(text: impl Into<String>) -> Result<Self, Error> {
        Self::new(CommandKind::Message(Content::Text(text.into())))
    }

    /// A cancellation, with a fresh idempotency key.
    ///
    /// # Errors
    /// [`Error::Setup`] when the system gives no random numbers.
    pub fn cancel() -> Result<Self, Error> {
        Self::new(CommandKind::Cancel { reason: None })
    }

    pub(crate) fn to_body(&self, request_id: String) -> Value {
        let mut body = json!({"requestId": request_id, "idempotencyKey": self.idempotency_key});
        let kind = match &self.kind {
            CommandKind::Message(content) => {
                content.put(&mut body);
                "message"
            }
            CommandKind::Queue(content) => {
                content.put(&mut body);
                body["whenBusy"] = json!("queue");
                "message"
            }
            CommandKind::Steer(content) => {
                content.put(&mut body);
                body["whenBusy"] = json!("steer");
                "message"
            }
            CommandKind::Approve { interaction_id, approval } => {
                body["interactionId"] = json!(interaction_id);
                body["approved"] = json!(*approval == Approval::Approved);
                "approve"
            }
            CommandKind::Respond { interaction_id, value } => {
                body["interactionId"] = json!(interaction_id);
                body["value"] = value.clone();
                "respond"
            }
            CommandKind::Cancel { reason } => {
                if let Some(reason) = reason {
                    body["reason"] = json!(reason);
                }
                "cancel"
            }
        };
        body["type"] = json!(kind);
        body
    }
}

impl Content {
    fn put(&self, body: &mut Value) {
        match self {
            Self::Text(text) => body["content"] = json!(text),
            Self::Data(data) => body["data"] = data.clone(),
            Self::Parts(parts) => body["parts"] = json!(parts),
        }
    }
}

impl Settle {
    /// A settlement with a fresh idempotency key.
    ///
    /// # Errors
    /// [`Error::Setup`] when the system gives no random numbers.
    pub fn new(effect_id: impl Into<String>, settlement: Settlement) -> Result<Self, Error> {
        Ok(Self { effect_id: effect_id.into(), idempotency_key: request_id()?, settlement })
    }

    pub(crate) fn to_body(&self, request_id: String) -> Value {
        let outcome = match &self.settlement {
            Settlement::Value(value) => json!({ "value": value }),
            Settlement::Error(message) => json!({ "error": message }),
            Settlement::Retry => json!({"retry": true}),
        };
        json!({"requestId": request_id, "idempotencyKey": self.idempotency_key, "outcome": outcome})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_own_members() {
        let id = || "i1".to_owned();
        let cases = [
            (CommandKind::Message(Content::Text("hi".into())), json!({"type": "message", "content": "hi"})),
            (
                CommandKind::Queue(Content::Text("hi".into())),
                json!({"type": "message", "content": "hi", "whenBusy": "queue"}),
            ),
            (
                CommandKind::Steer(Content::Text("hi".into())),
                json!({"type": "message", "content": "hi", "whenBusy": "steer"}),
            ),
            (CommandKind::Message(Content::Data(json!([1]))), json!({"type": "message", "data": [1]})),
            (
                CommandKind::Message(Content::Parts(vec![json!({"type": "text", "text": "x"})])),
                json!({"type": "message", "parts": [{"type": "text", "text": "x"}]}),
            ),
            (
                CommandKind::Approve { interaction_id: id(), approval: Approval::Denied },
                json!({"type": "approve", "interactionId": "i1", "approved": false}),
            ),
            (
                CommandKind::Respond { interaction_id: id(), value: Value::Null },
                json!({"type": "respond", "interactionId": "i1", "value": null}),
            ),
            (CommandKind::Cancel { reason: None }, json!({"type": "cancel"})),
            (CommandKind::Cancel { reason: Some("enough".into()) }, json!({"type": "cancel", "reason": "enough"})),
        ];
        for (kind, mut expected) in cases {
            expected["requestId"] = json!("r");
            expected["idempotencyKey"] = json!("k");
            assert_eq!(Command { idempotency_key: "k".into(), kind }.to_body("r".into()), expected);
        }
    }

    #[test]
    fn a_settlement_has_one_outcome() {
        let cases = [
            (Settlement::Value(json!({"a": 1})), json!({"value": {"a": 1}})),
            (Settlement::Error("no".into()), json!({"error": "no"})),
            (Settlement::Retry, json!({"retry": true})),
        ];
        for (settlement, outcome) in cases {
            let settle = Settle { effect_id: "e".into(), idempotency_key: "k".into(), settlement };
            assert_eq!(
                settle.to_body("r".into()),
                json!({"requestId": "r", "idempotencyKey": "k", "outcome": outcome})
            );
        }
    }
}
