//! Budgets: what is refused, and that sums of the ledger come out right in whatever pieces it is read.

use nylorun_domain::budget::{Budget, BudgetScope, Exhausted, Limits, Measure, Period, Spend, first_exhausted};
use nylorun_domain::id::{AgentId, EffectId, TurnId};
use nylorun_domain::spending::{SumKey, Sums, Tail, TailRow};
use nylorun_domain::time::Millis;
use proptest::prelude::*;

/// 2026-11-30T03:31:35.678Z
const NOW: Millis = Millis(1_796_009_495_678);

fn money(nano: i64) -> Limits {
    Limits { cost_nano_usd: Some(nano), tokens: None }
}

fn tokens(tokens: i64) -> Limits {
    Limits { cost_nano_usd: None, tokens: Some(tokens) }
}

fn spend(calls: i64, tokens: i64, cost_nano_usd: i64) -> Spend {
    Spend { calls, reported: calls, priced: calls, tokens, cost_nano_usd }
}

fn decide(limits: Limits, spend: Spend, in_flight: i64) -> Option<Exhausted> {
    let budget = Budget { scope: BudgetScope::Turn, limits };
    first_exhausted([(&budget, spend, in_flight)], NOW)
}

#[test]
fn a_call_is_refused_when_what_was_spent_and_what_is_in_flight_reach_a_limit() {
    let table = [
        // Nothing was spent: nobody knows what a call costs, so the first ones go on.
        (tokens(1), Spend::default(), 0, None),
        (tokens(1), Spend::default(), 1_000, None),
        (tokens(100), spend(2, 99, 0), 0, None),
        (tokens(100), spend(2, 100, 0), 0, Some(Measure::Tokens)),
        (tokens(100), spend(2, 101, 0), 0, Some(Measure::Tokens)),
        // Two calls took 60 tokens: another one is thought to take 30, and two are too many.
        (tokens(100), spend(2, 60, 0), 1, None),
        (tokens(100), spend(2, 60, 0), 2, Some(Measure::Tokens)),
        // An average is rounded up: 10 and a third of 10.
        (tokens(14), spend(3, 10, 0), 1, Some(Measure::Tokens)),
        (tokens(15), spend(3, 10, 0), 1, None),
        (money(5_000_000_000), spend(1, 7, 4_999_999_999), 0, None),
        (money(5_000_000_000), spend(1, 7, 5_000_000_000), 0, Some(Measure::Money)),
        // Calls without a price say nothing of what one costs.
        (money(100), Spend { priced: 1, ..spend(10, 7, 40) }, 1, None),
        (money(100), Spend { priced: 1, ..spend(10, 7, 40) }, 2, Some(Measure::Money)),
        // What costs nothing is never too dear, and its tokens count.
        (money(1), spend(9, 1_000, 0), 9, None),
        (Limits { cost_nano_usd: Some(1), tokens: Some(9) }, spend(9, 9, 0), 0, Some(Measure::Tokens)),
        (tokens(i64::MAX), spend(1, i64::MAX - 1, 0), i64::MAX, Some(Measure::Tokens)),
    ];
    for (limits, spend, in_flight, expected) in table {
        let refused = decide(limits, spend, in_flight);
        assert_eq!(refused.map(|refused| refused.measure), expected, "{limits:?} {spend:?} {in_flight}");
    }
}

#[test]
fn the_first_budget_that_is_used_up_is_named_with_its_numbers() {
    let agent = AgentId::from_trusted("helper");
    let budgets = [
        Budget { scope: BudgetScope::Tenant(Period::Month), limits: money(5_000_000_000) },
        Budget { scope: BudgetScope::Agent(agent, Period::Day), limits: tokens(50) },
        Budget { scope: BudgetScope::Turn, limits: tokens(1) },
    ];
    let said = |spends: [Spend; 3], in_flight| {
        let all = budgets.iter().zip(spends).map(|(budget, spend)| (budget, spend, in_flight));
        first_exhausted(all, NOW).map(|refused| refused.to_string())
    };
    let free = Spend::default();
    assert_eq!(said([free, free, free], 3), None);
    let rest = "`nylorun budget set` or PUT /v1/tenant/budgets raises it.";
    assert_eq!(
        said([spend(2, 0, 5_250_000_000), spend(1, 50, 0), free], 0),
        Some(format!(
            "The tenant's budget of the month is used up: 5.25 of 5 US dollars. \
             It begins anew at 2026-12-01T00:00:00.000Z. {rest}"
        ))
    );
    assert_eq!(
        said([free, spend(1, 40, 0), free], 1),
        Some(format!(
            "The budget of agent helper for the day is used up: 40 of 50 tokens, and a call is in flight. \
             It begins anew at 2026-12-01T00:00:00.000Z. {rest}"
        ))
    );
    assert_eq!(
        said([free, free, spend(1, 40, 0)], 2),
        Some(format!("The budget of a turn is used up: 40 of 1 tokens, and 2 calls are in flight. {rest}"))
    );
}

#[test]
fn an_agents_budget_covers_only_its_own_turns() {
    let (own, other) = (AgentId::from_trusted("a"), AgentId::from_trusted("b"));
    let budget = |scope| Budget { scope, limits: tokens(1) };
    assert!(budget(BudgetScope::Agent(own.clone(), Period::Day)).covers(&own));
    assert!(!budget(BudgetScope::Agent(own, Period::Day)).covers(&other));
    assert!(budget(BudgetScope::Tenant(Period::Day)).covers(&other) && budget(BudgetScope::Turn).covers(&other));
}

#[test]
fn periods_begin_and_end_in_utc() {
    for (now, period, start, end) in [
        ("2026-11-30T03:31:35.678Z", Period::Day, "2026-11-30", "2026-12-01"),
        ("2026-11-30T03:31:35.678Z", Period::Month, "2026-11-01", "2026-12-01"),
        ("2026-12-31T23:59:59.999Z", Period::Month, "2026-12-01", "2027-01-01"),
        ("2028-02-29T12:00:00.000Z", Period::Month, "2028-02-01", "2028-03-01"),
    ] {
        let now = (0..).map(|hour| NOW.plus(hour * 3_600_000)).find(|at| at.to_iso()[..13] == now[..13]);
        let now = now.expect("it is later");
        let midnight = |day: &str| format!("{day}T00:00:00.000Z");
        assert_eq!((period.start(now).to_iso(), period.end(now).to_iso()), (midnight(start), midnight(end)), "{now:?}");
    }
}

proptest! {
    /// More spent, or more in flight, never lets a call through that was refused.
    #[test]
    fn a_refusal_stays_one_when_more_is_spent(
        limit in 1_i64..1_000, calls in 0_i64..50, spent in 0_i64..2_000, in_flight in 0_i64..50,
        more in 0_i64..100, further in 0_i64..10,
    ) {
        let refused = |spent, in_flight| decide(tokens(limit), spend(calls, spent, 0), in_flight).is_some();
        if refused(spent, in_flight) {
            prop_assert!(refused(spent + more, in_flight) && refused(spent, in_flight + further));
        }
        // The bound (engine e.13, 73): what passes has not reached its limit.
        prop_assert!(refused(spent, in_flight) || spent < limit);
    }

    /// However the ledger is read, settled or not, and with a sum begun at any time: it is counted once.
    #[test]
    fn sums_hold_each_row_once(
        rows in proptest::collection::vec((0_i64..3, 0_u8..2, 0_i64..100, 0_i64..50), 0..40),
        reads in proptest::collection::vec((0_usize..41, 0_i64..120), 1..10),
        begun in 0_usize..10,
    ) {
        let mut place = 1;
        let ledger: Vec<TailRow> = rows.iter().enumerate().map(|(number, (step, agent, at, tokens))| {
            place += step;
            row(number, place, *agent, *at, *tokens)
        }).collect();
        let key = SumKey { agent: Some(AgentId::from_trusted("0")), since: Millis(50) };
        let total = |rows: &[TailRow]| {
            let counted = rows.iter().filter(|row| key.counts(row));
            counted.fold(Spend::default(), |sum, row| sum.plus(row.spend))
        };
        let mut sums = Sums::new(0);
        for (read, (visible, settled)) in reads.into_iter().enumerate() {
            // What is settled is visible.
            let visible = &ledger[..visible.min(ledger.len())];
            let settled = visible.last().map_or(0, |last| settled.min(last.place)).max(sums.settled_below());
            let from = sums.settled_below();
            let tail = visible.iter().filter(|row| row.place >= from).cloned().collect();
            let loose = sums.take(Tail { rows: tail, settled_below: settled });
            if read == begun {
                let below: Vec<_> = ledger.iter().filter(|row| row.place < sums.settled_below()).cloned().collect();
                sums.put(key.clone(), total(&below), &[key.since]);
            }
            if let Some(sum) = sums.get(&key) {
                let seen = ledger.iter().filter(|row| row.place < sums.settled_below()).count();
                let whole = &ledger[..visible.len().max(seen)];
                prop_assert_eq!(sum.plus(total(&loose)), total(whole));
            }
        }
    }
}

fn row(number: usize, place: i64, agent: u8, at: i64, tokens: i64) -> TailRow {
    TailRow {
        place,
        effect_id: EffectId::from_trusted(format!("e{number}")),
        turn_id: TurnId::from_trusted("t"),
        agent_id: AgentId::from_trusted(agent.to_string()),
        at: Millis(at),
        spend: spend(1, tokens, 0),
    }
}

#[test]
fn sums_of_older_periods_are_dropped() {
    let key = |since| SumKey { agent: None, since: Millis(since) };
    let mut sums = Sums::new(1);
    sums.put(key(0), Spend::default(), &[Millis(0)]);
    sums.put(key(10), Spend::default(), &[Millis(0), Millis(10)]);
    sums.put(key(20), Spend::default(), &[Millis(0), Millis(20)]);
    let kept = [0, 10, 20].map(|since| sums.get(&key(since)).is_some());
    assert_eq!(kept, [true, false, true]);
}
