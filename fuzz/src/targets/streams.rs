//! Event streams between this server and its clients.

use nylorun_client::sse::{Frame, FrameTooLarge, Parser};
use nylorun_domain::id::SessionId;
use nylorun_domain::json::{Json, parse};
use nylorun_wire::cursor;
use nylorun_wire::stream::{delta_frame, event_frame};

use super::cuts;

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, Result<(), FrameTooLarge>) {
    let mut parser = Parser::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        if let Err(error) = parser.push(chunk, |frame| frames.push(frame)) {
            return (frames, Err(error));
        }
    }
    (frames, Ok(()))
}

/// A cut of the connection's bytes means nothing; whatever an event's document is, its frame is read back as one frame,
/// from which a client resumes at the right place.
pub(super) fn frames(input: &[u8]) {
    let whole = read([input]);
    for chunks in cuts(input) {
        assert_eq!(read(chunks), whole);
    }
    let Some(document) = std::str::from_utf8(input).ok().and_then(|text| Json::parse(text).ok()) else { return };
    let session = SessionId::from_trusted(document.as_str());
    let frame = event_frame(&SessionId::from_trusted("s:1"), 7, "environment.exec", document.as_str());
    let delta = delta_frame(document.as_str());
    let (frames, end) = read([frame.as_bytes(), b": keepalive\n\n", delta.as_bytes()]);
    assert_eq!((frames.len(), end), (2, Ok(())));
    let id = frames[0].id.as_deref().unwrap_or_default();
    assert_eq!(cursor::read(id, &SessionId::from_trusted("s:1")), Ok(7));
    assert!(cursor::read(id, &session).is_err(), "of another session");
    assert_eq!((frames[0].event.as_str(), frames[1].event.as_str()), ("sandbox.exec", "message.delta"));
    assert_eq!(frames[1].id, None);
    // Line breaks between members come back as line feeds: the document is the same.
    assert_eq!(parse(&frames[1].data).as_ref(), Ok(&document.value()));
}
