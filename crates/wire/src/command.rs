//! Session commands on the wire (api 2.4).

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::id::TurnId;
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::transcript::Input;
use nylorun_domain::turn::WhenBusy;

use crate::body::{Body, content_of, missing};
use crate::error::Rejection;

/// `POST /v1/sessions/{id}/commands`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The caller's name for this request.
    pub request_id: String,
    /// Its key: one effect a key and session.
    pub idempotency_key: String,
    /// SHA-256 of the canonical body without `requestId`: a key used again must come with the same.
    pub body_hash: String,
    /// What is asked.
    pub kind: CommandKind,
    /// The body as it was sent: the payload of its event.
    pub raw: Json,
}

/// What a command asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// A message, which begins a turn.
    Message {
        /// What it holds.
        input: Input,
        /// A variant of the pinned agent, for this turn only.
        manifest: Option<Json>,
        /// What to do while a turn is active.
        when_busy: WhenBusy,
    },
    /// Answers an approval.
    Approve {
        /// The interaction.
        interaction_id: String,
        /// The answer.
        approved: bool,
    },
    /// Answers an interaction of another kind.
    Respond {
        /// The interaction.
        interaction_id: String,
        /// The answer.
        value: Json,
    },
    /// Ends the active turn.
    Cancel {
        /// Why, in the caller's words.
        reason: Option<Text>,
    },
}

impl Command {
    /// Reads a body that follows the route's schema.
    ///
    /// Refuses what the schema allows and this server does not do: 404 for a file part, since no artifact can be there.
    pub fn read(body: &Body) -> Result<Self, Rejection> {
        let invalid = |problems: Problems| Rejection::invalid(&problems);
        Ok(Self {
            request_id: body.text("requestId").map_err(invalid)?,
            idempotency_key: body.text("idempotencyKey").map_err(invalid)?,
            body_hash: body.identity(&["requestId"]),
            kind: CommandKind::read(body)?,
            raw: body.raw().clone(),
        })
    }
}

impl CommandKind {
    fn read(body: &Body) -> Result<Self, Rejection> {
        let invalid = |problems: Problems| Rejection::invalid(&problems);
        let interaction = || body.text("interactionId").map_err(invalid);
        let required = |name| invalid(missing(name));
        match body.text("type").map_err(invalid)?.as_str() {
            "message" => Ok(Self::Message {
                when_busy: read_when_busy(body).map_err(invalid)?,
                input: read_input(body)?,
                manifest: body.json("manifest"),
            }),
            "approve" => {
                let approved = body.value().get("approved").and_then(Value::as_bool);
                Ok(Self::Approve {
                    interaction_id: interaction()?,
                    approved: approved.ok_or_else(|| required("approved"))?,
                })
            }
            "respond" => Ok(Self::Respond {
                interaction_id: interaction()?,
                value: body.json("value").ok_or_else(|| required("value"))?,
            }),
            "cancel" => Ok(Self::Cancel { reason: body.value().get("reason").and_then(Value::as_text).cloned() }),
            _ => Err(required("type")),
        }
    }
}

fn read_when_busy(body: &Body) -> Result<WhenBusy, Problems> {
    match body.optional_text("whenBusy").as_deref() {
        Some("queue") => Ok(WhenBusy::Queue),
        Some("steer") if body.json("manifest").is_some() => {
            let message = "a message that steers is read by the running turn, which has its manifest: leave it out";
            Err(Problems::one(ProblemCode::Custom, &Path::ROOT.name("manifest"), message))
        }
        Some("steer") => Ok(WhenBusy::Steer),
        Some(_) | None => Ok(WhenBusy::Reject),
    }
}

fn read_input(body: &Body) -> Result<Input, Rejection> {
    if let Some(content) = body.value().get("content").and_then(Value::as_text) {
        return Ok(Input::Content(content.clone()));
    }
    if let Some(data) = body.json("data") {
        return Ok(Input::Data(data));
    }
    let parts = body.value().get("parts").and_then(Value::as_array).unwrap_or_default();
    parts.iter().map(read_part).collect::<Result<_, _>>().map(Input::Parts)
}

fn read_part(part: &Value) -> Result<Text, Rejection> {
    match part.get("artifactId") {
        Some(_) => Err(Rejection::missing("Artifact not found")),
        None => content_of(part, "text").map_err(|problems| Rejection::invalid(&problems)),
    }
}

/// The answer to a command that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The turn; `None` for a cancel.
    pub turn_id: Option<TurnId>,
    /// The cursor of the event that was written.
    pub cursor: Option<String>,
    /// The `requestId` of the request that was accepted first.
    pub request_id: String,
}

impl Accepted {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        Value::object([
            ("status", Value::from("accepted")),
            ("turnId", self.turn_id.as_ref().map_or(Value::Null, |turn| Value::from(turn.as_str()))),
            ("cursor", self.cursor.as_deref().map_or(Value::Null, Value::from)),
            ("requestId", Value::from(self.request_id.as_str())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::{Json, Text};
    use nylorun_domain::transcript::Input;
    use nylorun_domain::turn::WhenBusy;

    use super::{Command, CommandKind};
    use crate::body::Body;
    use crate::error::Rejection;

    fn read(members: &str) -> Result<Command, Rejection> {
        let text = format!(r#"{{"requestId":"r","idempotencyKey":"k",{members}}}"#);
        Command::read(&Body::new(Json::parse(&text).unwrap()))
    }

    #[test]
    fn content_is_kept_as_written() {
        let message = |input| CommandKind::Message { input, manifest: None, when_busy: WhenBusy::Reject };
        let lone = read(r#""type":"message","content":"a\ud800\u0000""#).unwrap();
        assert_eq!(lone.kind, message(Input::Content(Text::from_utf16(vec![0x61, 0xd800, 0]))));
        let data = read(r#""type":"message","data":{ "x" : 1.50 }"#).unwrap();
        assert_eq!(data.kind, message(Input::Data(Json::from_trusted(r#"{ "x" : 1.50 }"#))));
        let parts = read(r#""type":"message","parts":[{"type":"text","text":"a"}]"#).unwrap();
        assert_eq!(parts.kind, message(Input::Parts(vec![Text::from("a")])));
    }

    #[test]
    fn the_body_hash_leaves_out_the_request_id_alone() {
        let hash = |text: &str| Command::read(&Body::new(Json::parse(text).unwrap())).unwrap().body_hash;
        let one = hash(r#"{"requestId":"1","idempotencyKey":"k","type":"cancel"}"#);
        assert_eq!(hash(r#"{"type":"cancel","requestId":"2","idempotencyKey":"k"}"#), one);
        assert_ne!(hash(r#"{"requestId":"1","idempotencyKey":"l","type":"cancel"}"#), one);
    }

    #[test]
    fn refuses_what_is_not_served_yet() {
        let steer = read(r#""type":"message","content":"a","whenBusy":"steer","manifest":{}"#).unwrap_err();
        assert_eq!(steer.status, 400);
        assert!(steer.message.unwrap().contains(r#""path":["manifest"]"#));
        let file = read(r#""type":"message","parts":[{"type":"file","artifactId":"af_1"}]"#).unwrap_err();
        assert_eq!((file.status, file.message.as_deref()), (404, Some("Artifact not found")));
        assert!(read(r#""type":"message","content":"a","whenBusy":"reject""#).is_ok());
    }
}
