//! Events of a session's record, and deltas beside it (api 4; decisions, Token deltas).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::text;

/// One event, envelope `nylorun.event/2`. Unknown types and members are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it stands in the record; resume from here.
    pub cursor: String,
    /// Its type, such as `tool.completed`.
    pub kind: String,
    /// What its type says. A number beyond every double is a string here, and a lone surrogate is U+FFFD.
    pub payload: Value,
    /// The envelope without the payload.
    pub envelope: Map<String, Value>,
    /// The event exactly as it came.
    pub text: String,
}

impl Event {
    /// Reads an event; `None` when the text is not one.
    pub(crate) fn read(text: String) -> Option<Self> {
        let mut envelope: Map<String, Value> = text::parse(&text).ok()?;
        let payload = envelope.remove("payload").unwrap_or(Value::Null);
        let member = |name: &str| envelope.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self { cursor: member("cursor")?, kind: member("type")?, payload, envelope, text })
    }

    /// The turn that it belongs to.
    pub fn turn_id(&self) -> Option<&str> {
        self.envelope.get("turnId").and_then(Value::as_str)
    }

    /// Its number in the session, from 0. Clients see holes where internal events are.
    pub fn seq(&self) -> Option<u64> {
        self.envelope.get("seq").and_then(Value::as_u64)
    }

    /// When it was written, ISO 8601 with milliseconds, UTC.
    pub fn time(&self) -> Option<&str> {
        self.envelope.get("time").and_then(Value::as_str)
    }

    /// Whether it ends its turn.
    pub fn ends_turn(&self) -> bool {
        matches!(self.kind.as_str(), "turn.completed" | "turn.failed" | "turn.cancelled")
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = self.envelope.clone();
        document.insert("payload".to_owned(), self.payload.clone());
        document.serialize(serializer)
    }
}

/// Text that a model writes right now. Never in the record: the event that follows holds all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The session.
    pub session_id: String,
    /// The turn.
    pub turn_id: String,
    /// Ownership epoch of the writer. A higher one means: discard what was shown of this invocation.
    pub epoch: u64,
    /// The model call.
    pub invocation_id: String,
    /// Which try of the call. A higher one means: discard what was shown of this invocation.
    pub attempt: u64,
    /// Number of this piece within the attempt, from 0.
    pub index: u64,
    /// The piece.
    pub text: String,
    /// The delegated agent that writes; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Value>,
}

/// A page of a session's events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryPage {
    /// Oldest first.
    pub items: Vec<Event>,
    /// The last record read, for the next page; absent when nothing was read.
    pub cursor: Option<String>,
    /// Whether the record ends here. Only pages with a limit say it.
    pub tail: Option<bool>,
}

impl<'de> Deserialize<'de> for HistoryPage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Box<RawValue>>,
            cursor: Option<String>,
            tail: Option<bool>,
        }
        let page = Page::deserialize(deserializer)?;
        let items = page.items.into_iter().map(|item| Event::read(item.get().to_owned()));
        match items.collect() {
            Some(items) => Ok(Self { items, cursor: page.cursor, tail: page.tail }),
            None => Err(serde::de::Error::custom("an item has no cursor or no type")),
        }
    }
}
