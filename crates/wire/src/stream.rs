//! Frames of a session's event stream (api 1.11; decisions, Token deltas).

use nylorun_domain::id::SessionId;

use crate::{cursor, names};

/// The frame of an event of the record: its cursor, its type as clients up to protocol 10 know it, and its document.
pub fn event_frame(session: &SessionId, seq: i64, kind: &str, body: &str) -> String {
    let body = names::older_event(kind, body);
    let mut frame = String::with_capacity(body.len() + 256);
    frame.push_str("id: ");
    frame.push_str(&cursor::event(session, seq));
    frame.push_str("\nevent: ");
    frame.push_str(names::older_event_type(kind));
    frame.push('\n');
    push_data(&mut frame, &body);
    frame
}

/// The frame of a piece of an answer that is being made. It has no id: nobody resumes after it.
pub fn delta_frame(data: &str) -> String {
    let mut frame = "event: message.delta\n".to_owned();
    push_data(&mut frame, data);
    frame
}

/// The last frame of a stream whose caller's token has expired. It has no id: a client resumes after its last event.
pub fn expired_frame() -> &'static str {
    "event: nylorun.closed\ndata: {\"reason\":\"token_expired\"}\n\n"
}

/// A `data:` line a line of text, and the blank line that ends the frame. Content that a caller wrote over several
/// lines is kept so; a reader joins them again.
fn push_data(out: &mut String, data: &str) {
    for line in data.split(['\n', '\r']) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::SessionId;

    use super::{delta_frame, event_frame};

    fn frame(kind: &str, body: &str) -> String {
        event_frame(&SessionId::from_trusted("s"), 3, kind, body)
    }

    #[test]
    fn a_frame_holds_cursor_type_and_body() {
        for length in [1, 100_000] {
            let body = "x".repeat(length);
            assert_eq!(frame("turn.failed", &body), format!("id: czoz\nevent: turn.failed\ndata: {body}\n\n"));
        }
    }

    #[test]
    fn names_are_those_of_the_protocol() {
        let body = r#"{"type":"environment.exec","payload":{}}"#;
        assert_eq!(
            frame("environment.exec", body),
            "id: czoz\nevent: sandbox.exec\ndata: {\"type\":\"sandbox.exec\",\"payload\":{}}\n\n"
        );
    }

    #[test]
    fn line_breaks_never_end_a_frame() {
        assert_eq!(
            frame("t", "{\n\r\"a\":1\r\n}"),
            "id: czoz\nevent: t\ndata: {\ndata: \ndata: \"a\":1\ndata: \ndata: }\n\n"
        );
        assert_eq!(delta_frame("{}"), "event: message.delta\ndata: {}\n\n");
    }
}
