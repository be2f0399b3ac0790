//! Sums of the ledger that are kept up by reading only its newest rows, however long it is.
//!
//! A row has a place in the ledger. Transactions commit in any order, so rows may yet appear at the last places; below
//! the place that the store calls settled, none will. What is settled is added to the sums once, and what is not is
//! counted anew each time.

use std::collections::HashMap;

use crate::budget::Spend;
use crate::id::{AgentId, EffectId, TurnId};
use crate::time::Millis;

/// A row of the ledger's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailRow {
    /// Its place; rows of one transaction share theirs.
    pub place: i64,
    /// The call's effect.
    pub effect_id: EffectId,
    /// Its turn.
    pub turn_id: TurnId,
    /// Its turn's root agent.
    pub agent_id: AgentId,
    /// When its outcome was recorded.
    pub at: Millis,
    /// What it spent.
    pub spend: Spend,
}

/// The ledger from a place on, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The rows; perhaps not all of the last place.
    pub rows: Vec<TailRow>,
    /// Below this place nothing will appear any more, and all of it is in `rows` or before them.
    pub settled_below: i64,
}

/// Which rows a sum is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SumKey {
    /// Only those of this agent's turns.
    pub agent: Option<AgentId>,
    /// Those recorded at this time and later.
    pub since: Millis,
}

impl SumKey {
    /// Whether a row counts.
    pub fn counts(&self, row: &TailRow) -> bool {
        row.at >= self.since && self.agent.as_ref().is_none_or(|agent| *agent == row.agent_id)
    }
}

/// Sums of all settled rows.
#[derive(Clone, Debug)]
pub struct Sums {
    settled_below: i64,
    sums: HashMap<SumKey, Spend>,
}

impl Sums {
    /// No sums yet, of the rows below this place.
    pub fn new(settled_below: i64) -> Self {
        Self { settled_below, sums: HashMap::new() }
    }

    /// The sums hold the rows below this place, and no others.
    pub fn settled_below(&self) -> i64 {
        self.settled_below
    }

    /// The sum under this key, when it is kept.
    pub fn get(&self, key: &SumKey) -> Option<Spend> {
        self.sums.get(key).copied()
    }

    /// Keeps a sum of the rows below [`Sums::settled_below`], and drops those of periods that began at none of these
    /// times: they are over.
    pub fn put(&mut self, key: SumKey, spend: Spend, begun: &[Millis]) {
        self.sums.retain(|known, _| begun.contains(&known.since));
        self.sums.insert(key, spend);
    }

    /// Adds what is settled of the ledger from [`Sums::settled_below`] on, and gives the rest back.
    pub fn take(&mut self, tail: Tail) -> Vec<TailRow> {
        let Tail { rows, settled_below } = tail;
        let (settled, loose): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.place < settled_below);
        for row in &settled {
            for (_, sum) in self.sums.iter_mut().filter(|(key, _)| key.counts(row)) {
                *sum = sum.plus(row.spend);
            }
        }
        self.settled_below = self.settled_below.max(settled_below);
        loose
    }
}
