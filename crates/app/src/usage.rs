//! What model calls used (api 1.10, 2.3, 3).

use nylorun_domain::budget::Period;
use nylorun_domain::caller::Caller;
use nylorun_domain::id::{AgentId, SessionId, TurnId};
use nylorun_domain::time::Millis;
use nylorun_domain::usage::{UsageRow, UsageTotals};
use nylorun_store::{ExportedCall, SpendOf};
use nylorun_turns::now;
use nylorun_wire::usage::{Progress, TenantUsage};

use crate::{App, Error};

/// What a session used, at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionUsage {
    /// When it was read: later calls are not in it.
    pub as_of: Millis,
    /// The sums.
    pub totals: UsageTotals,
}

/// A page of a session's model calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsFound {
    /// When it was read.
    pub as_of: Millis,
    /// The oldest first.
    pub calls: Vec<UsageRow>,
    /// Where the list goes on, or `None` at its end.
    pub next: Option<CallPlace>,
}

/// A place in a session's list: by time and, among those of one millisecond, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// When the call's outcome was recorded.
    pub at: Millis,
    /// The call's id.
    pub id: String,
}

/// A page of the tenant's export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// When it was read.
    pub as_of: Millis,
    /// In the order of the ledger.
    pub calls: Vec<UsageRow>,
    /// Where the export goes on: never before where it began.
    pub next: LedgerPlace,
    /// Whether there was more.
    pub progress: Progress,
}

/// A place in the tenant's ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerPlace {
    /// What the ledger is ordered by.
    pub place: i64,
    /// The id of the row there; empty for the beginning.
    pub id: String,
}

/// Whose usage is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageOf {
    /// All that the tenant has.
    Tenant,
    /// Turns of this agent.
    Agent(AgentId),
    /// This turn.
    Turn(TurnId),
}

impl App {
    /// What a session's model calls used, or those of one of its turns.
    pub async fn session_usage(
        &self,
        caller: &Caller,
        id: &SessionId,
        turn: Option<&TurnId>,
    ) -> Result<SessionUsage, Error> {
        let session = self.session(caller, id).await?;
        let as_of = now();
        Ok(SessionUsage { as_of, totals: self.store().usage_totals(id, session.created_at, turn).await? })
    }

    /// At most `limit` model calls of a session, or of one of its turns, the oldest first, from after `place` on.
    pub async fn session_calls(
        &self,
        caller: &Caller,
        id: &SessionId,
        turn: Option<&TurnId>,
        place: Option<&CallPlace>,
        limit: usize,
    ) -> Result<CallsFound, Error> {
        let session = self.session(caller, id).await?;
        let as_of = now();
        // The ledger outlives a reset, and an id may be used again after one.
        let after = place.map_or((session.created_at, ""), |place| (place.at, place.id.as_str()));
        let mut calls = self.store().usage_of_session(id, turn, Some(after), one_more(limit)).await?;
        let has_more = calls.len() > limit;
        calls.truncate(limit);
        let next = calls.last().filter(|_| has_more).map(|last| CallPlace { at: last.at, id: last.id.clone() });
        Ok(CallsFound { as_of, calls, next })
    }

    /// At most `limit` model calls of the tenant from after `place` on, in an order in which no call appears before one
    /// that was given.
    pub async fn export_calls(&self, place: LedgerPlace, limit: usize) -> Result<Exported, Error> {
        let as_of = now();
        let mut found = self.store().usage_export((place.place, &place.id), one_more(limit)).await?;
        let progress = if found.len() > limit { Progress::Behind } else { Progress::CaughtUp };
        found.truncate(limit);
        let last = found.last().map(|ExportedCall { place, call }| LedgerPlace { place: *place, id: call.id.clone() });
        let calls = found.into_iter().map(|exported| exported.call).collect();
        Ok(Exported { as_of, calls, next: last.unwrap_or(place), progress })
    }

    /// What was spent since the beginning of this day or month, UTC, or ever.
    pub async fn tenant_usage(&self, of: UsageOf, period: Option<Period>) -> Result<TenantUsage, Error> {
        let since = period.map(|period| period.start(now()));
        let (scope, id, of) = match of {
            UsageOf::Tenant => ("tenant", None, SpendOf::Tenant),
            UsageOf::Agent(agent) => ("agent", Some(agent.to_string()), SpendOf::Agent(agent)),
            UsageOf::Turn(turn) => ("turn", Some(turn.to_string()), SpendOf::Turn(turn)),
        };
        let spend = self.store().usage_spend(&of, since.unwrap_or(Millis(i64::MIN)), i64::MAX).await?;
        Ok(TenantUsage { scope, id, period: period.map_or("total", Period::as_str), since, spend })
    }
}

/// One element more than was asked for says that the list goes on.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
