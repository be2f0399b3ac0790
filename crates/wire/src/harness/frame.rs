//! Frames: one JSON object a message (engine a.1).

use nylorun_domain::json::{Document, Json};

use super::shape::{Fields, Malformed, Member as _, Shape, shapes, words};
use crate::writer::Object;

words! {
    /// Why a request is refused. The set is closed.
    ErrorCode {
        /// The connection does not hold this run, or the run has ended.
        RunNotHeld = "run_not_held",
        /// The turn was cancelled, or another is active.
        TurnCancelled = "turn_cancelled",
        /// Another owner has the session.
        OwnershipLost = "ownership_lost",
        /// The effect asks for something else than when it was recorded.
        EffectDrift = "effect_drift",
        /// The request is wrong.
        Invalid = "invalid",
        /// What would answer is not there now, or not built.
        Unavailable = "unavailable",
        /// Anything else.
        Internal = "internal",
    }
}

shapes! {
    /// A refusal.
    ApiError {
        /// What kind.
        code: ErrorCode = "code",
        /// What happened, for a person.
        message: String = "message",
    }
}

impl ApiError {
    /// A refusal with these words.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<Malformed> for ApiError {
    fn from(malformed: Malformed) -> Self {
        Self::new(ErrorCode::Invalid, malformed.to_string())
    }
}

/// One message of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// `{t: "req", id, m, p}`
    Request {
        /// Counted by the sender, from 1.
        id: u64,
        /// The method.
        method: String,
        /// Its parameters.
        params: Json,
    },
    /// `{t: "res", id, ok: true, r}` or `{t: "res", id, ok: false, e}`
    Response {
        /// The request's id.
        id: u64,
        /// The answer.
        result: Result<Json, ApiError>,
    },
    /// `{t: "msg", m, p}`
    Message {
        /// The message.
        method: String,
        /// What it says.
        params: Json,
    },
    /// `{t: "abort", id}`: the sender gave its request up.
    Abort {
        /// The request's id.
        id: u64,
    },
    /// `{t: "ping"}`
    Ping,
}

/// A text that is no frame, and what the channel's rules make of it (engine a.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// It is recognisably this request, and is answered with an error.
    Request(u64, Malformed),
    /// It is a message, and is dropped.
    Message(Malformed),
    /// It is anything else: who sends such is not kept.
    Other(Malformed),
}

impl Frame {
    /// The frame's text.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        let mut frame = Object::open(&mut out);
        match self {
            Self::Request { id, method, params } => {
                frame.str("t", "req");
                id.put(&mut frame, "id");
                frame.str("m", method);
                frame.json("p", params);
            }
            Self::Response { id, result } => {
                frame.str("t", "res");
                id.put(&mut frame, "id");
                result.is_ok().put(&mut frame, "ok");
                match result {
                    Ok(result) => frame.json("r", result),
                    Err(error) => error.put(&mut frame, "e"),
                }
            }
            Self::Message { method, params } => {
                frame.str("t", "msg");
                frame.str("m", method);
                frame.json("p", params);
            }
            Self::Abort { id } => {
                frame.str("t", "abort");
                id.put(&mut frame, "id");
            }
            Self::Ping => frame.str("t", "ping"),
        }
        frame.close();
        out
    }

    /// Reads a frame's text, strictly.
    ///
    /// # Errors
    /// The text is no frame.
    pub fn decode(text: &str) -> Result<Self, BadFrame> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        let other = |error: Malformed| BadFrame::Other(error);
        Document::parse_envelope(text).map_err(|error| other(Malformed::new(format!("is no JSON: {error}"))))?;
        let mut fields = Fields::of(text).map_err(other)?;
        match fields.get::<String>("t").map_err(other)?.as_str() {
            "req" => {
                let id = id(&mut fields).map_err(other)?;
                request(id, fields).map_err(|error| BadFrame::Request(id, error))
            }
            "res" => response(fields).map_err(other),
            "msg" => message(fields).map_err(BadFrame::Message),
            "abort" => {
                let id = id(&mut fields).map_err(other)?;
                fields.end().map_err(other).map(|()| Self::Abort { id })
            }
            "ping" => fields.end().map_err(other).map(|()| Self::Ping),
            word => Err(other(Malformed::new(format!("may not be {word:?}")).within("t"))),
        }
    }
}

fn id(fields: &mut Fields<'_>) -> Result<u64, Malformed> {
    match fields.get("id")? {
        0 => Err(Malformed::new("must be above 0").within("id")),
        id => Ok(id),
    }
}

fn method(fields: &mut Fields<'_>) -> Result<String, Malformed> {
    let method: String = fields.get("m")?;
    if method.is_empty() { Err(Malformed::new("must not be empty").within("m")) } else { Ok(method) }
}

/// A part of a frame, which was parsed with it. It may hold content that nests as deep as content may.
struct Carried(Json);

impl Shape for Carried {
    fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        Ok(Self(Json::from_trusted(text)))
    }
}

fn carried(fields: &mut Fields<'_>, name: &str) -> Result<Json, Malformed> {
    fields.get::<Carried>(name).map(|carried| carried.0)
}

fn request(id: u64, mut fields: Fields<'_>) -> Result<Frame, Malformed> {
    let (method, params) = (method(&mut fields)?, carried(&mut fields, "p")?);
    fields.end().map(|()| Frame::Request { id, method, params })
}

fn response(mut fields: Fields<'_>) -> Result<Frame, Malformed> {
    let id = id(&mut fields)?;
    let result = if fields.get("ok")? { Ok(carried(&mut fields, "r")?) } else { Err(fields.get("e")?) };
    fields.end().map(|()| Frame::Response { id, result })
}

fn message(mut fields: Fields<'_>) -> Result<Frame, Malformed> {
    let (method, params) = (method(&mut fields)?, carried(&mut fields, "p")?);
    fields.end().map(|()| Frame::Message { method, params })
}
