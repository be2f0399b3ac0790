//! Messages that were sent while a turn ran: until it is known what became of each, the chat stays.

use std::collections::HashMap;

use nylorun_client::Event;
use serde_json::Value;

/// Messages on their way, by their idempotency key, with the id under which they wait once they do.
#[derive(Debug, Default)]
pub(super) struct Owed(HashMap<String, Option<String>>);

impl Owed {
    /// A message goes out.
    pub(super) fn sent(&mut self, key: &str) {
        self.0.insert(key.to_owned(), None);
    }

    /// It was not taken.
    pub(super) fn refused(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Learns from an event what became of messages.
    pub(super) fn note(&mut self, event: &Event) {
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
        let (key, id) = (text("idempotencyKey").unwrap_or_default(), text("messageId"));
        match event.kind.as_str() {
            "message.queued" => {
                if let Some(waits) = self.0.get_mut(key) {
                    *waits = id.map(str::to_owned);
                }
            }
            "message.steered" | "command.message" => self.refused(key),
            "message.removed" => self.0.retain(|_, waits| waits.is_none() || waits.as_deref() != id),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::show::sample::event;
    use super::*;

    #[test]
    fn a_message_is_owed_until_it_was_read_or_dropped() {
        let noted = |events: &[(&str, Value)]| {
            let mut owed = Owed::default();
            owed.sent("k");
            for (kind, payload) in events {
                owed.note(&event(1, kind, payload));
            }
            owed.is_empty()
        };
        let queued = ("message.queued", json!({"idempotencyKey": "k", "messageId": "m"}));
        assert!(!noted(&[]));
        assert!(!noted(std::slice::from_ref(&queued)));
        assert!(noted(&[queued.clone(), ("message.steered", json!({"idempotencyKey": "k", "messageId": "m"}))]));
        assert!(noted(&[queued.clone(), ("command.message", json!({"idempotencyKey": "k"}))]));
        assert!(noted(&[queued.clone(), ("message.removed", json!({"messageId": "m"}))]));
        assert!(!noted(&[queued.clone(), ("message.removed", json!({"messageId": "other"}))]));
        assert!(!noted(&[queued, ("command.message", json!({"idempotencyKey": "other"}))]));
        // The session was free when it came.
        assert!(noted(&[("command.message", json!({"idempotencyKey": "k"}))]));
    }
}
