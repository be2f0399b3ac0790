//! How long the tenant keeps what nobody works with any more, and removing the rest (`docs/guide/retention.md`).

use std::time::Duration;

use nylorun_domain::id::SessionId;
use nylorun_domain::json::Json;
use nylorun_domain::retention::{Keep, Retention};
use nylorun_domain::time::Millis;
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_store::{AgedSession, Removal};
use nylorun_wire::retention::{read, to_value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{App, Error};

/// The setting, as `GET /v1/tenant/retention` answers it.
const SETTING: &str = "retention";
/// How often all sessions are looked through.
const ROUND_EVERY: Duration = Duration::from_secs(60);
/// How long one sweep may take; it goes on at the next one.
const SWEEP_FOR: Duration = Duration::from_secs(1);
/// Sessions that are read at once.
const PAGE: i64 = 200;

/// Where this process is in its round.
#[derive(Debug, Default)]
pub(crate) struct Round(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The session that was looked at last; none before the round begins.
    after: Option<AgedSession>,
    /// When the next round begins; at once without it.
    next: Option<Instant>,
    /// What the round removed.
    removed: Removed,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Removed {
    sessions: u64,
    batches: u64,
}

/// The setting cannot be read. It was written by this program.
fn unreadable(problem: &dyn std::fmt::Display) -> Error {
    Error::Internal { message: format!("the setting {SETTING} cannot be read: {problem}") }
}

impl App {
    /// How long what is kept.
    pub async fn retention(&self) -> Result<Retention, Error> {
        let stored = self.store().setting_get(SETTING).await?;
        let Some(stored) = stored else { return Ok(Retention::default()) };
        let value = Json::parse(&stored).map_err(|error| unreadable(&error))?.value();
        read(&value).map_err(|problems| unreadable(&problems))
    }

    /// Sets how long what is kept. The next sweep begins to remove what is older.
    pub async fn set_retention(&self, retention: Retention) -> Result<Retention, Error> {
        self.store().setting_put(SETTING, to_value(&retention).to_json().as_str()).await?;
        *self.round().0.lock().await = State::default();
        tracing::info!(retention = to_value(&retention).to_json().as_str(), "retention set");
        Ok(retention)
    }

    /// Removes for a second what is older than the tenant keeps it. A round through all sessions begins once a minute.
    pub async fn sweep_retention(&self, now: Millis) -> Result<(), Error> {
        let mut state = self.round().0.lock().await;
        if state.next.is_some_and(|next| next > Instant::now()) {
            return Ok(());
        }
        let Retention { sessions, events } = self.retention().await?;
        let cutoffs = [sessions, events].map(|keep| keep.map(|keep: Keep| keep.cutoff(now)));
        let Some(opened_before) = cutoffs.iter().flatten().max().copied() else { return Ok(()) };
        let [sessions, events] = cutoffs;
        let begun = Instant::now();
        while begun.elapsed() < SWEEP_FOR {
            let page = self.store().session_opened_before(opened_before, state.after.as_ref(), PAGE).await?;
            let Some(last) = page.last().cloned() else {
                self.end_round(&mut state);
                break;
            };
            for session in page.iter().filter(|session| !session.is_active) {
                self.expire(session, sessions, events, &mut state.removed).await?;
            }
            state.after = Some(last);
        }
        if state.removed != Removed::default() {
            self.store().db().shrink().await?;
        }
        Ok(())
    }

    fn end_round(&self, state: &mut State) {
        let Removed { sessions, batches } = state.removed;
        if state.removed != Removed::default() {
            tracing::info!(sessions, event_batches = batches, "removed what was older than the tenant keeps it");
        }
        *state = State { next: Some(Instant::now() + ROUND_EVERY), ..State::default() };
    }

    /// Removes the session when it is too old as a whole, or else its events that are.
    async fn expire(
        &self,
        session: &AgedSession,
        sessions: Option<Millis>,
        events: Option<Millis>,
        removed: &mut Removed,
    ) -> Result<(), Error> {
        if let Some(cutoff) = sessions.filter(|cutoff| session.used_at < *cutoff) {
            if self.committer().expire(session, cutoff).await? == Removal::Removed {
                removed.sessions += 1;
                self.remove_files(&session.id).await?;
            }
            return Ok(());
        }
        let Some(cutoff) = events else { return Ok(()) };
        let mut from = Some(session.clone());
        while let Some(session) = from {
            let (expired, next) = self.store().event_expire(&session, cutoff).await?;
            removed.batches += u64::from(expired == Removal::Removed);
            from = next;
        }
        Ok(())
    }

    /// Removes what the session's workspace left. What a crash leaves here, the workspaces' own sweep removes.
    async fn remove_files(&self, id: &SessionId) -> Result<(), Error> {
        Ok(self.parts().removal.remove(&WorkspaceKey::of_session(self.tenant_id(), id)).await?)
    }
}
