//! Budgets: how much the tenant, an agent or a turn may spend on model calls (api 3.2, engine e.5).
//!
//! A call is refused when what was spent in the budget's period, together with what the calls in flight will probably
//! cost, has reached the limit. So a budget is overspent by what one call costs for each call that runs at the same
//! time, and by no more (engine e.13, 73).

use std::fmt;

use crate::id::AgentId;
use crate::json::Number;
use crate::model::words;
use crate::time::{DAY_MS, Millis};
use crate::usage::UsageRow;

/// Most budgets of a tenant (api 1.13).
pub const MAX_BUDGETS: usize = 100;
/// The largest limit in US dollars: above it, billionths would not fit a whole number.
pub const MAX_LIMIT_USD: i64 = 9_000_000_000;

words! {
    /// The time after which a budget begins anew.
    Period {
        /// A day, UTC.
        Day = "day",
        /// A calendar month, UTC.
        Month = "month",
    }
}

impl Period {
    /// When the period began that `now` is in.
    pub fn start(self, now: Millis) -> Millis {
        match self {
            Self::Day => now.day_start(),
            Self::Month => now.month_start(),
        }
    }

    /// When the next one begins.
    pub fn end(self, now: Millis) -> Millis {
        match self {
            Self::Day => now.day_start().plus(DAY_MS),
            // A month has at most 31 days, and two together at least 59.
            Self::Month => now.month_start().plus(32 * DAY_MS).month_start(),
        }
    }
}

/// What a budget is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    /// Everything, for each period.
    Tenant(Period),
    /// Turns of one agent, for each period.
    Agent(AgentId, Period),
    /// Each turn by itself.
    Turn,
}

/// How much may be spent. At least one of them is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Billionths of a US dollar, above 0.
    pub cost_nano_usd: Option<i64>,
    /// Tokens, above 0.
    pub tokens: Option<i64>,
}

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What it is for.
    pub scope: BudgetScope,
    /// How much.
    pub limits: Limits,
}

impl Budget {
    /// Whether calls of this agent's turns count.
    pub fn covers(&self, agent: &AgentId) -> bool {
        match &self.scope {
            BudgetScope::Tenant(_) | BudgetScope::Turn => true,
            BudgetScope::Agent(own, _) => own == agent,
        }
    }
}

/// What calls have spent, as the ledger says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Calls.
    pub calls: i64,
    /// Calls whose tokens are known.
    pub reported: i64,
    /// Calls whose price is known.
    pub priced: i64,
    /// Tokens.
    pub tokens: i64,
    /// Billionths of a US dollar.
    pub cost_nano_usd: i64,
}

impl Spend {
    /// These calls and the other ones.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            reported: self.reported.saturating_add(other.reported),
            priced: self.priced.saturating_add(other.priced),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_nano_usd: self.cost_nano_usd.saturating_add(other.cost_nano_usd),
        }
    }

    /// One call.
    pub fn of(row: &UsageRow) -> Self {
        let cost = row.usage.and_then(|usage| usage.cost_nano_usd);
        Self {
            calls: 1,
            reported: i64::from(row.usage.is_some()),
            priced: i64::from(cost.is_some()),
            tokens: row.usage.map_or(0, |usage| usage.total),
            cost_nano_usd: cost.unwrap_or(0),
        }
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// US dollars.
    Money,
    /// Tokens.
    Tokens,
}

/// Why a call is refused: this limit is reached. Its text says so to whoever reads the turn's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The budget.
    pub scope: BudgetScope,
    /// Which of its limits.
    pub measure: Measure,
    /// The limit, in billionths of a US dollar or tokens.
    pub limit: i64,
    /// What was spent.
    pub spent: i64,
    /// How many calls are in flight beside it.
    pub in_flight: i64,
    /// When the budget begins anew; never, for a turn.
    pub anew_at: Option<Millis>,
}

/// The first of the budgets that leaves no room for another call; `spent` stands beside each with the number of calls
/// that are in flight and count towards it.
pub fn first_exhausted<'a>(
    budgets: impl IntoIterator<Item = (&'a Budget, Spend, i64)>,
    now: Millis,
) -> Option<Exhausted> {
    budgets.into_iter().find_map(|(budget, spent, in_flight)| exhausted(budget, spent, in_flight, now))
}

fn exhausted(budget: &Budget, spend: Spend, in_flight: i64, now: Millis) -> Option<Exhausted> {
    let Limits { cost_nano_usd, tokens } = budget.limits;
    let limits = [
        (Measure::Money, cost_nano_usd, spend.cost_nano_usd, spend.priced),
        (Measure::Tokens, tokens, spend.tokens, spend.reported),
    ];
    let anew_at = match &budget.scope {
        BudgetScope::Tenant(period) | BudgetScope::Agent(_, period) => Some(period.end(now)),
        BudgetScope::Turn => None,
    };
    limits.into_iter().find_map(|(measure, limit, spent, calls)| {
        let limit = limit?;
        let is_reached = projected(spent, calls, in_flight) >= i128::from(limit);
        is_reached.then(|| Exhausted { scope: budget.scope.clone(), measure, limit, spent, in_flight, anew_at })
    })
}

/// What was spent, and what the calls in flight will cost if they cost what a call did so far: rounded up.
fn projected(spent: i64, calls: i64, in_flight: i64) -> i128 {
    let (spent, calls, in_flight) = (i128::from(spent), i128::from(calls), i128::from(in_flight));
    if calls <= 0 { spent } else { spent + (spent * in_flight + calls - 1) / calls }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            BudgetScope::Tenant(period) => write!(f, "The tenant's budget of the {}", period.as_str())?,
            BudgetScope::Agent(agent, period) => {
                write!(f, "The budget of agent {agent} for the {}", period.as_str())?;
            }
            BudgetScope::Turn => f.write_str("The budget of a turn")?,
        }
        let amount = |amount: i64| match self.measure {
            Measure::Money => Number::from_billionths(amount).as_raw().to_owned(),
            Measure::Tokens => amount.to_string(),
        };
        let unit = match self.measure {
            Measure::Money => "US dollars",
            Measure::Tokens => "tokens",
        };
        write!(f, " is used up: {} of {} {unit}", amount(self.spent), amount(self.limit))?;
        match self.in_flight {
            0 => {}
            1 => f.write_str(", and a call is in flight")?,
            calls => write!(f, ", and {calls} calls are in flight")?,
        }
        if let Some(at) = self.anew_at {
            write!(f, ". It begins anew at {}", at.to_iso())?;
        }
        f.write_str(". `nylorun budget set` or PUT /v1/tenant/budgets raises it.")
    }
}
