//! One turn: a message goes out, and what comes of it is printed until it rests.

use std::io::Stdout;
use std::time::Duration;

use nylorun_client::{
    Accepted, Command, Deltas, Error, Event, Events, Follow, Session, SessionStatus, SessionView, Update,
};
use serde_json::Value;

use super::super::failure::Failure;
use super::super::session::{Inputs, calls_in_doubt, explain};
use super::super::show::EventPrinter;
use super::super::term::duration;
use super::input::{HELP, Interrupts, Keyboard, Typed, WhenBusy, write_stderr};
use super::owed::Owed;
use super::reach::Reach;

/// How long a message that got no answer is sent again: waits that double from the first, as often as this.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const TRIES: u32 = 7;
/// How often a turn is looked at that may wait for somebody.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How a turn came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It completed.
    Completed,
    /// It failed or was cancelled.
    Otherwise,
    /// It waits for somebody, who was told.
    Waits,
    /// The person left while it ran.
    Left,
}

/// A session whose turns are run one after the other.
pub(super) struct Turn {
    pub(super) session: Session,
    pub(super) printer: EventPrinter<Stdout>,
    /// Ctrl-C, between turns too.
    pub(super) interrupts: Interrupts,
    /// Who is asked.
    pub(super) keyboard: Keyboard,
    /// What a line does that is typed while a turn runs.
    pub(super) when_busy: WhenBusy,
    /// What the calls were asked for with, for questions about them.
    pub(super) inputs: Inputs,
    owed: Owed,
    reach: Reach,
}

impl Turn {
    pub(super) fn new(
        session: Session,
        reach: Reach,
        printer: EventPrinter<Stdout>,
        interrupts: Interrupts,
        keyboard: Keyboard,
        when_busy: WhenBusy,
    ) -> Self {
        let (inputs, owed) = (Inputs::default(), Owed::default());
        Self { session, printer, interrupts, keyboard, when_busy, inputs, owed, reach }
    }

    /// Sends a message and prints what comes of it.
    ///
    /// # Errors
    /// What the server refused, or that it stayed away.
    pub(super) async fn run(&mut self, message: &str) -> Result<Ended, Failure> {
        match self.send(&Command::text(message)?).await? {
            Sent::Accepted(accepted) => self.follow(accepted.cursor, Standing::in_turn(accepted.turn_id)).await,
            Sent::Refused(error) => Err((*error).into()),
            Sent::Left => Ok(Ended::Left),
        }
    }

    /// Sends a message to a session that may be busy, and prints what happens until it has been dealt with.
    ///
    /// # Errors
    /// What the server refused, or that it stayed away.
    pub(super) async fn run_when_busy(&mut self, message: &str, when_busy: WhenBusy) -> Result<Ended, Failure> {
        // Before the message goes out: every event of its way must be seen.
        let view = self.session.view().await?;
        self.read_inputs(&view).await?;
        let cursor = self.session.history(None, None).await?.cursor;
        let command = Command::new(when_busy.command(message))?;
        self.owed.sent(&command.idempotency_key);
        match self.send(&command).await? {
            Sent::Accepted(_) => self.follow(cursor, Standing::of(&view)).await,
            Sent::Refused(error) => Err((*error).into()),
            Sent::Left => Ok(Ended::Left),
        }
    }

    /// Prints what a turn that has not ended has done, and what comes of it.
    ///
    /// # Errors
    /// What the server refused.
    pub(super) async fn attach(&mut self, turn_id: &str) -> Result<Ended, Failure> {
        let page = self.session.history(None, None).await?;
        for event in page.items.iter().filter(|event| event.turn_id() == Some(turn_id)) {
            self.inputs.note(event);
            self.printer.event(event)?;
            if let Rest::Ended(ended) = self.rest(event)? {
                return Ok(ended);
            }
        }
        // It may be waiting already, and then no event says so.
        let standing = Standing { looking: true, ..Standing::in_turn(Some(turn_id.to_owned())) };
        self.follow(page.cursor, standing).await
    }

    /// Prints what comes after the cursor until the turn rests and what was said meanwhile has been dealt with.
    async fn follow(&mut self, after: Option<String>, mut standing: Standing) -> Result<Ended, Failure> {
        let mut events = self.events(after);
        let mut cancelling = false;
        let mut rest = if standing.looking { Rest::Look } else { Rest::Runs };
        loop {
            match rest {
                Rest::Runs => {}
                Rest::Ended(Ended::Left) => return Ok(Ended::Left),
                Rest::Ended(ended) => standing = Standing { ended: Some(ended), looking: false, ..standing },
                Rest::Look => match self.look().await? {
                    Looked::NotYet => standing.looking = true,
                    Looked::Answered => standing.looking = false,
                    Looked::Waits => return Ok(Ended::Waits),
                    Looked::Left => return Ok(Ended::Left),
                },
            }
            if let Some(ended) = standing.ended.filter(|_| self.owed.is_empty()) {
                return Ok(ended);
            }
            let next = tokio::select! {
                update = events.next() => Next::Update(update.map(Box::new)),
                () = self.interrupts.next() => Next::Interrupt,
                line = self.keyboard.meanwhile() => Next::Typed(line),
                () = tokio::time::sleep(LOOK_EVERY), if standing.looking => Next::Look,
            };
            rest = match next {
                Next::Update(None) => return Ok(Ended::Otherwise),
                Next::Update(Some(update)) => {
                    let update = (*update)?;
                    let rest = self.update(&update, &mut standing)?;
                    if let Update::Interrupted { cause, .. } = &update {
                        self.interrupted(&mut events, cause)?;
                    }
                    rest
                }
                Next::Interrupt if cancelling => self.leave()?,
                Next::Interrupt => {
                    cancelling = true;
                    self.cancel().await?
                }
                Next::Typed(line) => self.typed(&line).await?,
                Next::Look => Rest::Look,
            };
        }
    }

    fn events(&self, after: Option<String>) -> Events {
        self.session.events(Follow { after, deltas: Deltas::With, ..Follow::default() })
    }

    /// The connection was lost: goes where the server is now, or gives up when it has stayed away for too long.
    fn interrupted(&mut self, events: &mut Events, cause: &str) -> Result<(), Failure> {
        if self.follow_server()? {
            *events = self.events(events.cursor().map(str::to_owned));
            return Ok(());
        }
        match events.unanswered_for() {
            Some(away) => self.reach.wait_on(self.session.id(), away, cause),
            None => Ok(()),
        }
    }

    /// Turns to where the server is now. Answers whether that is another place than before.
    fn follow_server(&mut self) -> Result<bool, Failure> {
        let Some(client) = self.reach.moved() else { return Ok(false) };
        self.session = client.session(self.session.id());
        self.printer.notice(&format!("the server is at {} now", client.base_url()))?;
        Ok(true)
    }

    /// Does what a line wants that was typed while a turn runs.
    async fn typed(&mut self, line: &str) -> Result<Rest, Failure> {
        let (when_busy, message) = match Typed::read(line) {
            Typed::Nothing => return Ok(Rest::Runs),
            Typed::Quit => return self.leave(),
            Typed::Help => {
                write_stderr(HELP);
                return Ok(Rest::Runs);
            }
            Typed::Unknown(word) => {
                self.printer.notice(&unknown(word))?;
                return Ok(Rest::Runs);
            }
            Typed::When(when_busy, message) => (when_busy, message),
            Typed::Message(message) => (self.when_busy, message),
        };
        let command = Command::new(when_busy.command(message))?;
        self.owed.sent(&command.idempotency_key);
        match self.send(&command).await? {
            Sent::Accepted(_) => {}
            Sent::Refused(error) => {
                self.owed.refused(&command.idempotency_key);
                self.printer.notice(&format!("not sent: {error}"))?;
            }
            Sent::Left => return self.leave(),
        }
        Ok(Rest::Runs)
    }

    /// Sends a command, again and again while no answer comes: its key makes sure that it counts once.
    pub(super) async fn send(&mut self, command: &Command) -> Result<Sent, Failure> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let answer = tokio::select! {
                answer = self.session.command(command) => answer,
                () = self.interrupts.next() => return Ok(Sent::Left),
            };
            match answer {
                Err(error) if error.may_pass() && attempt < TRIES => {
                    self.printer.notice(&format!("{error}; sending again in {}", duration(wait)))?;
                    self.follow_server()?;
                }
                Err(error) if error.may_pass() => return Err(error.into()),
                Err(error) => return Ok(Sent::Refused(Box::new(error))),
                Ok(accepted) => return Ok(Sent::Accepted(accepted)),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait *= 2,
                () = self.interrupts.next() => return Ok(Sent::Left),
            }
        }
        Ok(Sent::Left)
    }

    /// Cancels the turn; the event that follows says that it was. A second interrupt leaves when the cancel arrived,
    /// so that two quick ones do not leave a turn that runs on; a third does not wait.
    pub(super) async fn cancel(&mut self) -> Result<Rest, Failure> {
        self.printer.notice("cancelling the turn; Ctrl-C again leaves")?;
        let (session, command) = (self.session.clone(), Command::cancel()?);
        let mut answer = std::pin::pin!(session.command(&command));
        let mut leaving = false;
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                () = self.interrupts.next() => {
                    if std::mem::replace(&mut leaving, true) {
                        return self.leave();
                    }
                    self.printer.notice("leaving when the cancel has arrived; Ctrl-C again does not wait")?;
                }
            }
        };
        match answer {
            Ok(_) => {}
            Err(error) if error.may_pass() => self.printer.notice(&format!("not cancelled: {error}"))?,
            Err(error) => return Err(error.into()),
        }
        if leaving { self.leave() } else { Ok(Rest::Runs) }
    }

    pub(super) fn leave(&mut self) -> Result<Rest, Failure> {
        self.printer.notice(&format!("left; the session stays: --session {}", self.session.id()))?;
        Ok(Rest::Ended(Ended::Left))
    }

    fn update(&mut self, update: &Update, standing: &mut Standing) -> Result<Rest, Failure> {
        self.printer.update(update)?;
        let Update::Event(event) = update else { return Ok(Rest::Runs) };
        self.inputs.note(event);
        self.owed.note(event);
        if event.kind == "command.message" && standing.ended.is_some() {
            // A message that waited begins its turn.
            *standing = Standing::in_turn(event.turn_id().map(str::to_owned));
        }
        if event.turn_id() == standing.turn_id.as_deref() { self.rest(event) } else { Ok(Rest::Runs) }
    }

    /// Whether the turn rests after this event, and how.
    fn rest(&mut self, event: &Event) -> Result<Rest, Failure> {
        match event.kind.as_str() {
            "turn.completed" => Ok(Rest::Ended(Ended::Completed)),
            "turn.cancelled" => Ok(Rest::Ended(Ended::Otherwise)),
            "turn.failed" => {
                if event.payload.pointer("/error/code").and_then(Value::as_str) == Some("model.auth") {
                    self.printer.notice("choose a model with `nylorun model set PROVIDER/MODEL`")?;
                }
                Ok(Rest::Ended(Ended::Otherwise))
            }
            // While others of its effects run, it does not wait yet, and no event tells when it begins to.
            "turn.paused" | "effect.uncertain" => Ok(Rest::Look),
            _ => Ok(Rest::Runs),
        }
    }

    /// Looks whether the turn waits for somebody: to settle an effect, which is said, or to answer, which is asked.
    async fn look(&mut self) -> Result<Looked, Failure> {
        let looked = match self.session.view().await {
            Ok(view) => match view.status {
                SessionStatus::Uncertain => self.explain_doubt(&view).await,
                SessionStatus::Paused => return self.ask(&view).await,
                SessionStatus::Idle
                | SessionStatus::Runnable
                | SessionStatus::Running
                | SessionStatus::Waiting
                | SessionStatus::Completed
                | SessionStatus::Failed
                | SessionStatus::Cancelled
                | SessionStatus::Other(_) => return Ok(Looked::NotYet),
            },
            Err(error) => Err(error),
        };
        match looked {
            Ok(text) => {
                self.printer.advice(&text)?;
                Ok(Looked::Waits)
            }
            Err(error) if error.may_pass() => Ok(Looked::NotYet),
            Err(error) => Err(error.into()),
        }
    }

    async fn explain_doubt(&self, view: &SessionView) -> Result<String, Error> {
        let calls = calls_in_doubt(&self.session, view).await?;
        let ours = view.uncertain_effects.iter().filter(|effect| effect.turn_id == view.active_turn_id);
        let style = self.printer.style();
        Ok(ours.map(|effect| explain(view, effect, &calls, &style)).collect())
    }
}

/// What is said of a command that there is not.
pub(super) fn unknown(word: &str) -> String {
    format!("there is no command {word}; /help lists them, and //… sends a line that begins with /")
}

/// Where a session stands while it is followed.
struct Standing {
    /// The turn whose end is waited for.
    turn_id: Option<String>,
    /// How it ended.
    ended: Option<Ended>,
    /// Whether it may wait for somebody without an event that says so.
    looking: bool,
}

impl Standing {
    fn in_turn(turn_id: Option<String>) -> Self {
        Self { turn_id, ended: None, looking: false }
    }

    /// As the view has it: in its active turn, or between two.
    fn of(view: &SessionView) -> Self {
        match &view.active_turn_id {
            Some(turn_id) => Self { looking: true, ..Self::in_turn(Some(turn_id.clone())) },
            None => Self { ended: Some(Ended::Otherwise), ..Self::in_turn(None) },
        }
    }
}

/// What became of a command.
pub(super) enum Sent {
    Accepted(Accepted),
    Refused(Box<Error>),
    /// The person left before it was answered.
    Left,
}

/// What happens next while a turn runs.
enum Next {
    Update(Option<Box<Result<Update, Error>>>),
    Interrupt,
    /// Somebody typed a line.
    Typed(String),
    /// The turn may wait for somebody: time to look.
    Look,
}

/// Whether a turn goes on.
pub(super) enum Rest {
    Runs,
    Ended(Ended),
    /// The session knows whether the turn waits for somebody.
    Look,
}

/// What a look at the session gave.
pub(super) enum Looked {
    /// It does not wait, or not yet.
    NotYet,
    /// It waited for answers and got them.
    Answered,
    /// It waits, and that was said.
    Waits,
    /// The person left.
    Left,
}
