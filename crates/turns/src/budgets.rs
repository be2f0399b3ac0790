//! Budgets, kept in the store: what the model gate asks before each call.
//!
//! Nothing is read for a call while there are no budgets: their version comes with what the gate reads anyway. With
//! budgets, a call costs one short read of the ledger's end, however long the ledger is: sums of what is settled are
//! kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::budget::{Budget, BudgetScope, Spend, first_exhausted};
use nylorun_domain::id::{AgentId, EffectId, TurnId};
use nylorun_domain::spending::{SumKey, Sums, TailRow};
use nylorun_domain::time::Millis;
use nylorun_ports::BoxFuture;
use nylorun_ports::budgets::{Admission, Budgets, BudgetsVersion, Pass};
use nylorun_ports::models::ModelCall;
use nylorun_store::{SpendOf, Store, StoreError};
use tokio::time::Instant;

use crate::clock::now;

/// Most rows of the ledger's end that are read. Where there are more, because this process is far behind or somebody's
/// transaction has been open for long, the whole period is summed up instead.
const TAIL: i64 = 1_000;
/// How long a call that has ended counts as in flight while its row does not appear. Rows are written with the call's
/// outcome, a moment later; there is none when the run was stopped or another owner took over.
const ROW_AWAITED: Duration = Duration::from_secs(60);

/// Budgets in the store.
pub struct StoreBudgets {
    store: Store,
    known: tokio::sync::Mutex<Known>,
    in_flight: InFlight,
}

/// What was read, and is kept.
#[derive(Default)]
struct Known {
    version: BudgetsVersion,
    budgets: Vec<Budget>,
    sums: Option<Sums>,
}

impl StoreBudgets {
    /// The budgets of this store.
    pub fn new(store: Store) -> Self {
        Self { store, known: tokio::sync::Mutex::default(), in_flight: InFlight::default() }
    }

    async fn decide(&self, call: &ModelCall, version: &BudgetsVersion) -> Result<Admission, StoreError> {
        // One call after the other, so that each counts those that were let through before it.
        let mut known = self.known.lock().await;
        if known.version != *version {
            known.budgets = self.store.budget_list().await?;
            known.version.clone_from(version);
        }
        if !known.budgets.iter().any(|budget| budget.covers(&call.agent_id)) {
            return Ok(Admission::Granted(Pass::uncounted()));
        }
        let now = now();
        let Known { budgets, sums, .. } = &mut *known;
        let end = self.catch_up(sums).await?;
        let mut spends = Vec::new();
        for budget in budgets.iter().filter(|budget| budget.covers(&call.agent_id)) {
            let spend = self.spend(budget, call, sums.as_mut(), &end, now).await?;
            spends.push((budget, spend, self.in_flight.count(budget, call)));
        }
        Ok(match first_exhausted(spends, now) {
            Some(exhausted) => Admission::Refused(exhausted),
            None => Admission::Granted(self.in_flight.begin(call)),
        })
    }

    /// Reads what is new in the ledger: adds it to the sums as far as it is settled, and gives the rest. Without sums
    /// where that is too much.
    async fn catch_up(&self, sums: &mut Option<Sums>) -> Result<Vec<TailRow>, StoreError> {
        let mut kept = match sums.take() {
            Some(kept) => kept,
            None => Sums::new(self.store.usage_settled_below().await?),
        };
        let tail = self.store.usage_tail(kept.settled_below(), TAIL).await?;
        self.in_flight.recorded(&tail.rows);
        if i64::try_from(tail.rows.len()).is_ok_and(|rows| rows >= TAIL) {
            return Ok(Vec::new());
        }
        let loose = kept.take(tail);
        *sums = Some(kept);
        Ok(loose)
    }

    async fn spend(
        &self,
        budget: &Budget,
        call: &ModelCall,
        sums: Option<&mut Sums>,
        loose: &[TailRow],
        now: Millis,
    ) -> Result<Spend, StoreError> {
        let (of, period) = match &budget.scope {
            BudgetScope::Turn => {
                return self.store.usage_spend(&SpendOf::Turn(call.turn_id.clone()), Millis(0), i64::MAX).await;
            }
            BudgetScope::Tenant(period) => (SpendOf::Tenant, period),
            BudgetScope::Agent(agent, period) => (SpendOf::Agent(agent.clone()), period),
        };
        let agent = match &of {
            SpendOf::Agent(agent) => Some(agent.clone()),
            SpendOf::Tenant | SpendOf::Turn(_) => None,
        };
        let key = SumKey { agent, since: period.start(now) };
        let Some(sums) = sums else { return self.store.usage_spend(&of, key.since, i64::MAX).await };
        let settled = match sums.get(&key) {
            Some(sum) => sum,
            None => {
                let sum = self.store.usage_spend(&of, key.since, sums.settled_below()).await?;
                sums.put(key.clone(), sum, &[now.day_start(), now.month_start()]);
                sum
            }
        };
        let loose = loose.iter().filter(|row| key.counts(row));
        Ok(loose.fold(settled, |sum, row| sum.plus(row.spend)))
    }
}

impl Budgets for StoreBudgets {
    fn admit<'a>(&'a self, call: &'a ModelCall, version: &'a BudgetsVersion) -> BoxFuture<'a, Admission> {
        Box::pin(async move {
            if version.is_none() {
                return Admission::Granted(Pass::uncounted());
            }
            self.decide(call, version).await.unwrap_or_else(|error| {
                let (session, turn) = (call.session_id.as_str(), call.turn_id.as_str());
                tracing::warn!(%error, session, turn, "budgets could not be read: a model call goes on without them");
                Admission::Granted(self.in_flight.begin(call))
            })
        })
    }
}

/// The calls of this process that are in flight, by their effect.
#[derive(Clone, Default)]
struct InFlight(Arc<Mutex<HashMap<EffectId, Flight>>>);

struct Flight {
    turn: TurnId,
    agent: AgentId,
    stage: Stage,
}

enum Stage {
    /// It has not ended.
    Flying,
    /// It has not ended, and its row is there: its turn was cancelled.
    Recorded,
    /// It ended then, and its row is awaited.
    Ended(Instant),
}

impl InFlight {
    /// The calls that count towards the budget of this call.
    fn count(&self, budget: &Budget, call: &ModelCall) -> i64 {
        let flights = self.lock();
        let counted = flights.values().filter(|flight| match &budget.scope {
            BudgetScope::Tenant(_) => true,
            BudgetScope::Agent(agent, _) => flight.agent == *agent,
            BudgetScope::Turn => flight.turn == call.turn_id,
        });
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    }

    fn begin(&self, call: &ModelCall) -> Pass {
        let flight = Flight { turn: call.turn_id.clone(), agent: call.agent_id.clone(), stage: Stage::Flying };
        self.lock().insert(call.effect_id.clone(), flight);
        let (flights, effect) = (self.clone(), call.effect_id.clone());
        Pass::counted(move || flights.end(&effect))
    }

    fn end(&self, effect: &EffectId) {
        let mut flights = self.lock();
        match flights.get_mut(effect) {
            Some(Flight { stage: Stage::Recorded, .. }) => drop(flights.remove(effect)),
            Some(flight) => flight.stage = Stage::Ended(Instant::now()),
            None => {}
        }
    }

    /// Forgets calls that have ended and whose rows are these, or did not appear.
    fn recorded(&self, rows: &[TailRow]) {
        let mut flights = self.lock();
        for row in rows {
            match flights.get_mut(&row.effect_id) {
                Some(Flight { stage: Stage::Ended(_), .. }) => drop(flights.remove(&row.effect_id)),
                Some(flight) => flight.stage = Stage::Recorded,
                None => {}
            }
        }
        flights.retain(|_, flight| match flight.stage {
            Stage::Flying | Stage::Recorded => true,
            Stage::Ended(at) => at.elapsed() < ROW_AWAITED,
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EffectId, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
