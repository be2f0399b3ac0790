//! A session's record: history and following (api 2.3, 1.11).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::caller::Caller;
use nylorun_domain::event::Visibility;
use nylorun_domain::id::SessionId;
use nylorun_domain::json::quoted;
use nylorun_domain::time::Millis;
use nylorun_store::{Store, StoredEvent};
use nylorun_turns::{Heard, LiveDelta, Observer, Shared, now};

use crate::access::KeyWatch;
use crate::{App, Error};

/// Most events that are read from the record at once.
const PAGE: i64 = 500;

/// Events that a follower reads first, before it knows how long this record's events are.
const FIRST_PAGE: i64 = 4;

/// About what a follower holds of the record, in bytes: one whose client takes nothing holds no more.
const PAGE_BYTES: usize = 1 << 20;

/// Answers whose pieces may still be heard after they were read. The pieces of one run to hundreds; those of more than
/// a few answers do not fit into what an observer may fall behind.
const ANSWERS: usize = 32;

/// A part of a session's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// Public events, in order.
    pub events: Vec<Arc<StoredEvent>>,
    /// The last record that was read, also when it is internal; where reading began when there was none.
    pub last: Option<i64>,
    /// Whether nothing followed when the page was read.
    pub tail: bool,
}

/// What a follower is given.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A public event of the record.
    Event(Arc<Shared<StoredEvent>>),
    /// A `message.delta`: never recorded, and not given again after a lost connection.
    Delta(Arc<Shared<LiveDelta>>),
    /// The caller's token has expired: nothing follows.
    TokenExpired,
}

/// Follows one session: the record from a place on, then what happens, each event once and in order. It ends soon
/// after the caller's key is rotated or deleted, and at the end of the caller's token (api 1.6).
pub struct Follower {
    credential: Credential,
    reader: Reader,
}

/// What a follower is allowed by.
enum Credential {
    /// Until it is gone.
    Key(KeyWatch),
    /// Until this time, without tolerance.
    Token { expires_at: Millis },
    /// It was a token.
    Ended,
}

struct Reader {
    store: Store,
    session: SessionId,
    observer: Observer,
    /// The sequence number of the next event.
    next: i64,
    /// How many events are read at once.
    page: i64,
    /// Events that were read and not yet given.
    read: VecDeque<Arc<Shared<StoredEvent>>>,
    /// The newest answers of models that were read, the last one first, until an event is heard.
    answers: VecDeque<Arc<Shared<StoredEvent>>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The record may hold more than was read.
    Reading,
    /// Everything so far was read: what is new is heard.
    Listening,
}

impl App {
    /// The events after `after` (all, when `None`): up to the record's end, or at most `limit` records.
    pub async fn history(
        &self,
        caller: &Caller,
        id: &SessionId,
        after: Option<i64>,
        limit: Option<usize>,
    ) -> Result<HistoryPage, Error> {
        let session = self.session(caller, id).await?;
        refuse_beyond(after, session.head)?;
        let limit = limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let mut page = HistoryPage { events: Vec::new(), last: after, tail: false };
        let mut examined = 0;
        while page.last.unwrap_or(-1) + 1 < session.head && limit.is_none_or(|limit| examined < limit) {
            let wanted = limit.map_or(PAGE, |limit| PAGE.min(limit - examined));
            let events = self.store().event_range(id, page.last.unwrap_or(-1), wanted).await?;
            if events.is_empty() {
                break;
            }
            for event in events.into_iter().filter(|event| event.seq < session.head) {
                examined += 1;
                page.last = Some(event.seq);
                if event.visibility == Visibility::Public {
                    page.events.push(Arc::new(event));
                }
            }
        }
        page.tail = page.last.unwrap_or(-1) + 1 >= session.head;
        Ok(page)
    }

    /// Follows the session from after `after` (from its beginning, when `None`).
    pub async fn follow(&self, caller: &Caller, id: &SessionId, after: Option<i64>) -> Result<Follower, Error> {
        let credential = match caller {
            Caller::Key { principal, .. } => Credential::Key(self.key_watches().watch(self.store(), principal)),
            Caller::Person(person) => Credential::Token { expires_at: person.expires_at },
        };
        // Observing begins before the row is read: what is committed between is heard, and what was before is read.
        let observer = self.parts().live.observe(id);
        let session = self.session(caller, id).await?;
        refuse_beyond(after, session.head)?;
        let reader = Reader {
            store: self.store().clone(),
            session: id.clone(),
            observer,
            next: after.unwrap_or(-1) + 1,
            page: FIRST_PAGE,
            read: VecDeque::new(),
            answers: VecDeque::new(),
            state: State::Reading,
        };
        Ok(Follower { credential, reader })
    }
}

fn refuse_beyond(after: Option<i64>, head: i64) -> Result<(), Error> {
    match after {
        Some(after) if after >= head => Err(Error::bad_request("Invalid cursor")),
        Some(_) | None => Ok(()),
    }
}

impl Follower {
    /// The next frame. `None` when the caller's key or the session is gone, its token has expired, or the record cannot
    /// be read: then the client resumes with its last cursor. May be dropped while it waits without losing any.
    pub async fn next(&mut self) -> Option<Frame> {
        match &mut self.credential {
            Credential::Key(key) => tokio::select! {
                biased;
                () = key.gone() => None,
                frame = self.reader.next() => frame,
            },
            Credential::Token { expires_at } => {
                let frame = tokio::select! {
                    biased;
                    () = reached(*expires_at) => Some(Frame::TokenExpired),
                    frame = self.reader.next() => frame,
                };
                if matches!(frame, Some(Frame::TokenExpired)) {
                    self.credential = Credential::Ended;
                }
                frame
            }
            Credential::Ended => None,
        }
    }
}

/// Waits until the clock says so: a clock that is set meanwhile is asked again.
async fn reached(time: Millis) {
    /// How long the clock is not looked at.
    const LOOK_EVERY: Duration = Duration::from_secs(60);
    while let Ok(left) = u64::try_from(time.0 - now().0)
        && left > 0
    {
        tokio::time::sleep(Duration::from_millis(left).min(LOOK_EVERY)).await;
    }
}

impl Reader {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some(event) = self.read.pop_front() {
                if event.visibility == Visibility::Public {
                    return Some(Frame::Event(event));
                }
            }
            match self.state {
                State::Reading => self.read_on().await?,
                State::Listening => match self.observer.next().await {
                    Heard::Behind => self.state = State::Reading,
                    Heard::Ended => return None,
                    Heard::Delta(delta) if self.is_in_record(&delta) => {}
                    Heard::Delta(delta) => return Some(Frame::Delta(delta)),
                    Heard::Event(event) => self.hear(event),
                },
            }
        }
    }

    async fn read_on(&mut self) -> Option<()> {
        let events = match self.store.event_range(&self.session, self.next - 1, self.page).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "a follower cannot read the record");
                return None;
            }
        };
        if let Some(last) = events.last() {
            self.next = last.seq + 1;
        }
        if (events.len() as i64) < self.page {
            // That was the end. What was committed since is heard, since observing began before reading.
            self.state = State::Listening;
        } else {
            self.page = page_after(&events);
        }
        for event in events.into_iter().filter(|event| event.visibility == Visibility::Public) {
            let event = self.observer.read(event);
            if matches!(&*event.kind, "message.assistant" | "model.failed") {
                self.answers.truncate(ANSWERS - 1);
                self.answers.push_front(Arc::clone(&event));
            }
            self.read.push_back(event);
        }
        Some(())
    }

    /// Whether a piece was heard late: its answer was read from the record before it.
    fn is_in_record(&self, delta: &LiveDelta) -> bool {
        let id = quoted(delta.invocation_id.as_str());
        self.answers.iter().any(|answer| answer.body.contains(&format!(r#""invocationId":{id}"#)))
    }

    /// Commits of one session may be heard in another order than they happened: the record has the right one.
    fn hear(&mut self, event: Arc<Shared<StoredEvent>>) {
        if event.seq == self.next {
            // What was heard before this one is behind us.
            self.answers.clear();
            self.next += 1;
            self.read.push_back(event);
        } else if event.seq > self.next {
            self.state = State::Reading;
        }
    }
}

/// How many events like these make a page.
fn page_after(events: &[StoredEvent]) -> i64 {
    let bytes: usize = events.iter().map(|event| event.body.len()).sum();
    let mean = bytes / events.len().max(1);
    i64::try_from(PAGE_BYTES / mean.max(1)).unwrap_or(PAGE).clamp(1, PAGE)
}

#[cfg(test)]
mod tests {
    use nylorun_domain::event::Visibility;

    use super::{Millis, PAGE, PAGE_BYTES, StoredEvent, page_after};

    #[test]
    fn a_page_has_about_a_megabyte_and_at_least_one_event() {
        let page = |body: usize| {
            let (kind, visibility) = ("turn.failed".into(), Visibility::Public);
            let event =
                StoredEvent { seq: 0, kind, visibility, body: "x".repeat(body).into(), committed_at: Millis(0) };
            page_after(&[event.clone(), event])
        };
        assert_eq!([page(0), page(600), page(PAGE_BYTES / 20), page(3 * PAGE_BYTES)], [PAGE, PAGE, 20, 1]);
    }
}
