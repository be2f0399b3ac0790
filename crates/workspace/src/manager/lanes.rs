//! Lanes: who waits for whom on one workspace (environments 3, rule 2).
//!
//! Calls of one session run in the order in which they came; calls of different sessions run at the same time; what
//! runs alone waits for all that came before it, and all that comes after waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_domain::id::SessionId;
use tokio::sync::Notify;

/// Where a ticket queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Behind the earlier calls of the same session.
    Session(SessionId),
    /// Behind everything.
    Alone,
}

/// The queue of one workspace: tickets that wait or run, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    last: u64,
    tickets: VecDeque<(u64, Lane)>,
}

impl Queue {
    /// Whether nothing before this ticket is in its way.
    fn is_ready(&self, id: u64) -> bool {
        let Some(at) = self.tickets.iter().position(|(ticket, _)| *ticket == id) else { return true };
        let lane = &self.tickets[at].1;
        let mut before = self.tickets.iter().take(at).map(|(_, lane)| lane);
        match lane {
            Lane::Alone => at == 0,
            Lane::Session(_) => before.all(|other| *other != Lane::Alone && other != lane),
        }
    }
}

/// A place in the queue; dropping it gives it up, whether its turn has come or not.
#[derive(Debug)]
pub(super) struct Ticket {
    lanes: Arc<Lanes>,
    id: u64,
}

impl Lanes {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next place.
    pub(super) fn enter(self: &Arc<Self>, lane: Lane) -> Ticket {
        let mut queue = self.queue();
        queue.last += 1;
        let id = queue.last;
        queue.tickets.push_back((id, lane));
        Ticket { lanes: Arc::clone(self), id }
    }

    /// Takes a place to run alone, if nobody is there.
    pub(super) fn enter_if_empty(self: &Arc<Self>) -> Option<Ticket> {
        // Both under one lock: else a call could slip in between, and the caller would wait for it.
        let mut queue = self.queue();
        if !queue.tickets.is_empty() {
            return None;
        }
        queue.last += 1;
        let id = queue.last;
        queue.tickets.push_back((id, Lane::Alone));
        Some(Ticket { lanes: Arc::clone(self), id })
    }

    /// Whether nobody waits or runs.
    pub(super) fn is_empty(&self) -> bool {
        self.queue().tickets.is_empty()
    }
}

impl Ticket {
    /// Waits until its turn comes.
    pub(super) async fn turn(&self) {
        loop {
            let changed = self.lanes.changed.notified();
            tokio::pin!(changed);
            // Registered before looking: a change between the look and the wait is not missed.
            changed.as_mut().enable();
            if self.lanes.queue().is_ready(self.id) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.lanes.queue().tickets.retain(|(id, _)| *id != self.id);
        self.lanes.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> Lane {
        Lane::Session(SessionId::from_trusted(name))
    }

    fn is_ready(ticket: &Ticket) -> bool {
        ticket.lanes.queue().is_ready(ticket.id)
    }

    #[test]
    fn one_sessions_calls_are_in_order_and_others_run_beside_them() {
        let lanes = Arc::new(Lanes::default());
        let (a1, a2, b1) = (lanes.enter(session("a")), lanes.enter(session("a")), lanes.enter(session("b")));
        assert_eq!([&a1, &a2, &b1].map(is_ready), [true, false, true]);
        drop(a1);
        assert_eq!([&a2, &b1].map(is_ready), [true, true]);
    }

    #[test]
    fn what_runs_alone_waits_for_all_before_and_holds_all_after() {
        let lanes = Arc::new(Lanes::default());
        let (a, alone, b) = (lanes.enter(session("a")), lanes.enter(Lane::Alone), lanes.enter(session("b")));
        assert_eq!([&a, &alone, &b].map(is_ready), [true, false, false]);
        assert!(lanes.enter_if_empty().is_none());
        drop(a);
        assert_eq!([&alone, &b].map(is_ready), [true, false]);
        drop(alone);
        assert!(is_ready(&b));
        drop(b);
        assert!(lanes.enter_if_empty().is_some_and(|ticket| is_ready(&ticket)));
    }

    #[tokio::test]
    async fn a_place_that_is_given_up_before_its_turn_lets_the_next_wait_on() {
        let lanes = Arc::new(Lanes::default());
        let (first, second, third) = (lanes.enter(session("a")), lanes.enter(session("a")), lanes.enter(session("a")));
        drop(second);
        assert!(!is_ready(&third));
        let waiting = tokio::spawn(async move { third.turn().await });
        drop(first);
        waiting.await.unwrap();
    }
}
