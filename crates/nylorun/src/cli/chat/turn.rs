//! One turn: a message goes out, and what comes of it is printed until it rests.

use std::io::Stdout;
use std::time::Duration;

use nylorun_client::{Accepted, Command, Deltas, Error, Event, Follow, Session, SessionStatus, Update};
use serde_json::Value;

use super::super::failure::Failure;
use super::super::session::{calls_in_doubt, explain};
use super::super::show::EventPrinter;
use super::super::term::duration;
use super::input::Interrupts;

/// How long a message that got no answer is sent again: waits that double from the first, as often as this.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const TRIES: u32 = 7;
/// How often a turn with an uncertain effect is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How a turn came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It completed.
    Completed,
    /// It failed, was cancelled, or waits for somebody.
    Otherwise,
    /// The person left while it ran.
    Left,
}

/// A session whose turns are run one after the other.
pub(super) struct Turn {
    session: Session,
    printer: EventPrinter<Stdout>,
    /// Ctrl-C, between turns too.
    pub(super) interrupts: Interrupts,
}

impl Turn {
    pub(super) fn new(session: Session, printer: EventPrinter<Stdout>, interrupts: Interrupts) -> Self {
        Self { session, printer, interrupts }
    }

    /// Sends a message and prints what comes of it.
    ///
    /// # Errors
    /// What the server refused, or that it stayed away.
    pub(super) async fn run(&mut self, message: &str) -> Result<Ended, Failure> {
        match self.send(&Command::text(message)?).await? {
            Some(accepted) => self.follow(accepted.cursor, accepted.turn_id.as_deref()).await,
            None => Ok(Ended::Left),
        }
    }

    /// Prints what a turn that runs already has done, and what comes of it.
    ///
    /// # Errors
    /// What the server refused.
    pub(super) async fn attach(&mut self, turn_id: &str) -> Result<Ended, Failure> {
        let page = self.session.history(None, None).await?;
        for event in page.items.iter().filter(|event| event.turn_id() == Some(turn_id)) {
            self.printer.event(event)?;
            if let Rest::Ended(ended) = self.rest(event)? {
                return Ok(ended);
            }
        }
        self.follow(page.cursor, Some(turn_id)).await
    }

    /// Prints what comes after the cursor until the turn rests.
    async fn follow(&mut self, after: Option<String>, turn_id: Option<&str>) -> Result<Ended, Failure> {
        let mut events = self.session.events(Follow { after, deltas: Deltas::With, ..Follow::default() });
        let mut cancelling = false;
        let mut in_doubt = false;
        loop {
            let next = tokio::select! {
                update = events.next() => Next::Update(update.map(Box::new)),
                () = self.interrupts.next() => Next::Interrupt,
                () = tokio::time::sleep(LOOK_EVERY), if in_doubt => Next::Look,
            };
            let rest = match next {
                Next::Update(None) => Rest::Ended(Ended::Otherwise),
                Next::Update(Some(update)) => self.update(&(*update)?, turn_id)?,
                Next::Interrupt if cancelling => self.leave()?,
                Next::Interrupt => {
                    cancelling = true;
                    self.cancel().await?
                }
                Next::Look => Rest::InDoubt,
            };
            match rest {
                Rest::Runs => {}
                Rest::Ended(ended) => return Ok(ended),
                Rest::InDoubt if self.rests_uncertain().await? => return Ok(Ended::Otherwise),
                Rest::InDoubt => in_doubt = true,
            }
        }
    }

    /// Sends a command, again and again while no answer comes: its key makes sure that it counts once. `None` when the
    /// person left meanwhile.
    async fn send(&mut self, command: &Command) -> Result<Option<Accepted>, Failure> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let answer = tokio::select! {
                answer = self.session.command(command) => answer,
                () = self.interrupts.next() => return Ok(None),
            };
            match answer {
                Err(error) if error.may_pass() && attempt < TRIES => {
                    self.printer.notice(&format!("{error}; sending again in {}", duration(wait)))?;
                }
                answer => return Ok(Some(answer?)),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait *= 2,
                () = self.interrupts.next() => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Cancels the turn; the event that follows says that it was. A second interrupt leaves when the cancel has arrived,
    /// so that two quick ones do not leave a turn that runs on; a third does not wait.
    async fn cancel(&mut self) -> Result<Rest, Failure> {
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

    fn leave(&mut self) -> Result<Rest, Failure> {
        self.printer.notice(&format!("left; the session stays: --session {}", self.session.id()))?;
        Ok(Rest::Ended(Ended::Left))
    }

    fn update(&mut self, update: &Update, turn_id: Option<&str>) -> Result<Rest, Failure> {
        self.printer.update(update)?;
        match update {
            Update::Event(event) if event.turn_id() == turn_id => self.rest(event),
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => Ok(Rest::Runs),
        }
    }

    /// Whether the turn rests after this event, and how. Says what to do when it waits for somebody.
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
            "turn.paused" => {
                let cancel = format!("`nylorun session cancel {}`", self.session.id());
                self.printer.notice(&format!("answer with an `approve` or `respond` command, or end it: {cancel}"))?;
                Ok(Rest::Ended(Ended::Otherwise))
            }
            "effect.uncertain" => Ok(Rest::InDoubt),
            _ => Ok(Rest::Runs),
        }
    }

    /// Whether the turn waits for somebody to settle an effect; says how. While others of its effects run, it does not
    /// wait yet, and no event tells when it begins to.
    async fn rests_uncertain(&mut self) -> Result<bool, Failure> {
        let view = match self.session.view().await {
            Ok(view) => view,
            Err(error) if error.may_pass() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if view.status != SessionStatus::Uncertain {
            return Ok(false);
        }
        let calls = match calls_in_doubt(&self.session, &view).await {
            Ok(calls) => calls,
            Err(error) if error.may_pass() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let ours = view.uncertain_effects.iter().filter(|effect| effect.turn_id == view.active_turn_id);
        let style = self.printer.style();
        let text: String = ours.map(|effect| explain(&view, effect, &calls, &style)).collect();
        self.printer.advice(&text)?;
        Ok(true)
    }
}

/// What happens next while a turn runs.
enum Next {
    Update(Option<Box<Result<Update, Error>>>),
    Interrupt,
    /// An effect is uncertain: time to look whether the turn rests.
    Look,
}

/// Whether a turn goes on.
enum Rest {
    Runs,
    Ended(Ended),
    /// An effect is uncertain; the session knows whether the turn waits for it.
    InDoubt,
}
