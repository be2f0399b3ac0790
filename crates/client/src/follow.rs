//! Following a session: each event once and in order, through lost connections (api 1.11).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::event::{Delta, Event};
use crate::http::{Call, Http};
use crate::sse::{Frame, Parser};
use crate::text;

/// The server sends a comment every 15 s; three missed ones mean that the connection is dead.
const SILENCE: Duration = Duration::from_secs(45);

/// How to follow.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Cursor to go on after; from the session's first event when absent.
    pub after: Option<String>,
    /// Whether to be sent text while the model writes it.
    pub deltas: Deltas,
    /// How long to wait between tries.
    pub reconnect: Reconnect,
}

/// Whether to be sent deltas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deltas {
    /// Only events of the record.
    #[default]
    Without,
    /// Deltas between them.
    With,
}

/// Waits between tries: the first, doubling to the longest. They start again after each event. And how long a try may
/// take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// 250 ms unless set.
    pub first: Duration,
    /// 30 s unless set.
    pub longest: Duration,
    /// After how long without the beginning of an answer a try has failed: something else may listen where the server
    /// did, and say nothing. 30 s unless set.
    pub answer_within: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        let [longest, answer_within] = [Duration::from_secs(30); 2];
        Self { first: Duration::from_millis(250), longest, answer_within }
    }
}

/// What following gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The next event of the record.
    Event(Event),
    /// Text that the model is writing.
    Delta(Delta),
    /// The connection was lost. Following goes on by itself after `wait`; nothing is missed or repeated.
    Interrupted {
        /// Time until the next try.
        wait: Duration,
        /// Why, in words.
        cause: String,
    },
}

/// The events of a session. Dropping it ends the connection.
pub struct Events {
    http: Arc<Http>,
    session_id: String,
    after: Option<String>,
    deltas: Deltas,
    backoff: Backoff,
    answer_within: Duration,
    state: State,
    /// What came and was not given yet; an error is its last.
    ready: VecDeque<Result<Update, Error>>,
    /// Whether the server has closed the stream by itself since the last event.
    closed_before: bool,
    /// When the first of the tries failed that have failed without one that worked.
    unanswered_since: Option<Instant>,
}

type Connecting = Pin<Box<dyn Future<Output = Result<reqwest::Response, Error>> + Send>>;

enum State {
    /// Connects at this time.
    Waiting(Instant),
    /// Kept here, so that dropping the future of `next` does not begin it anew.
    Connecting(Connecting),
    Reading(Box<Reading>),
    /// An error was given that no other try mends.
    Ended,
}

struct Reading {
    response: reqwest::Response,
    parser: Parser,
}

impl Events {
    pub(crate) fn new(http: Arc<Http>, session_id: String, follow: Follow) -> Self {
        Self {
            http,
            session_id,
            after: follow.after,
            deltas: follow.deltas,
            backoff: Backoff::new(follow.reconnect.first, follow.reconnect.longest),
            answer_within: follow.reconnect.answer_within,
            state: State::Waiting(Instant::now()),
            ready: VecDeque::new(),
            closed_before: false,
            unanswered_since: None,
        }
    }

    /// How long no try to connect has worked; `None` when the last one did.
    pub fn unanswered_for(&self) -> Option<Duration> {
        self.unanswered_since.map(|since| since.elapsed())
    }

    /// Cursor of the last event given; what to go on after.
    pub fn cursor(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The next update. It waits for as long as nothing happens, and gives `None` only after an error.
    ///
    /// Cancel safe: a future that is dropped loses nothing.
    ///
    /// # Errors
    /// What no other try mends: a refusal (4xx other than 408 and 429), an incompatible server, a frame too large.
    /// After an error the stream has ended.
    pub async fn next(&mut self) -> Option<Result<Update, Error>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                if let Ok(Update::Event(event)) = &update {
                    self.after = Some(event.cursor.clone());
                }
                return Some(update);
            }
            let step = match &mut self.state {
                State::Ended => return None,
                State::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.state = State::Connecting(self.connect());
                    Ok(())
                }
                State::Connecting(connecting) => {
                    let answer = connecting.await;
                    self.connected(answer)
                }
                State::Reading(_) => self.read().await,
            };
            if let Err(error) = step {
                self.state = State::Ended;
                self.ready.push_back(Err(error));
            }
        }
    }

    /// The same as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Update, Error>> {
        futures_util::stream::unfold(self, |mut events| async move { Some((events.next().await?, events)) })
    }

    fn connect(&self) -> Connecting {
        let (http, id, after) = (Arc::clone(&self.http), self.session_id.clone(), self.after.clone());
        let deltas = match self.deltas {
            Deltas::With => Some("true"),
            Deltas::Without => None,
        };
        let within = self.answer_within;
        Box::pin(async move {
            let segments = ["v1", "sessions", &id, "events"];
            let call = Call::get(&segments).query("deltas", deltas);
            let resume = after.as_deref().map(|cursor| ("Last-Event-ID", cursor));
            let answer = tokio::time::timeout(within, http.stream(&call, resume.as_slice())).await;
            let silent = || Error::Unreachable { url: http.base().to_owned(), cause: "it took too long".to_owned() };
            answer.map_err(|_| silent()).flatten()
        })
    }

    fn connected(&mut self, answer: Result<reqwest::Response, Error>) -> Result<(), Error> {
        match answer {
            Ok(response) => {
                self.unanswered_since = None;
                self.state = State::Reading(Box::new(Reading { response, parser: Parser::default() }));
                Ok(())
            }
            Err(error) if error.may_pass() => {
                let asked = error.refusal().and_then(|refusal| refusal.retry_after);
                let wait = self.backoff.advance().max(asked.unwrap_or_default());
                self.unanswered_since.get_or_insert_with(Instant::now);
                self.interrupt(wait, error.to_string());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let State::Reading(reading) = &mut self.state else { return Ok(()) };
        let cause = match tokio::time::timeout(SILENCE, reading.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                let mut frames = Vec::new();
                let parsed = reading.parser.push(&bytes, |frame| frames.push(frame));
                for frame in frames {
                    if self.take(frame)? == Flow::Closed {
                        return Ok(());
                    }
                }
                return Ok(parsed?);
            }
            Ok(Ok(None)) => "the server ended the stream".to_owned(),
            Ok(Err(_)) => "the connection was lost".to_owned(),
            Err(_) => format!("nothing came for {} s", SILENCE.as_secs()),
        };
        let wait = self.backoff.advance();
        self.interrupt(wait, cause);
        Ok(())
    }

    fn take(&mut self, frame: Frame) -> Result<Flow, Error> {
        match frame.event.as_str() {
            "nylorun.closed" => {
                // The first time it only means "connect again"; a server that keeps saying it is not hammered.
                let again = std::mem::replace(&mut self.closed_before, true);
                let wait = if again { self.backoff.advance() } else { Duration::ZERO };
                self.interrupt(wait, format!("the server closed the stream: {}", frame.data));
                return Ok(Flow::Closed);
            }
            "message.delta" => {
                // A delta that cannot be read is no loss: the event after it holds the whole text.
                self.ready.extend(text::parse(&frame.data).ok().map(|delta| Ok(Update::Delta(delta))));
                return Ok(Flow::Open);
            }
            _ => {}
        }
        // Frames without an id are signals beside the record; the ones that this client does not know are passed over.
        let Some(id) = frame.id else { return Ok(Flow::Open) };
        let Some(mut event) = Event::read(frame.data) else {
            let url = format!("{}/v1/sessions/{}/events", self.http.base(), self.session_id);
            return Err(Error::Malformed { url, reason: format!("frame {id} holds no event") });
        };
        event.cursor = id;
        self.backoff.reset();
        self.closed_before = false;
        self.ready.push_back(Ok(Update::Event(event)));
        Ok(Flow::Open)
    }

    fn interrupt(&mut self, wait: Duration, cause: String) {
        self.state = State::Waiting(Instant::now() + wait);
        self.ready.push_back(Ok(Update::Interrupted { wait, cause }));
    }
}

#[derive(PartialEq, Eq)]
enum Flow {
    Open,
    Closed,
}
