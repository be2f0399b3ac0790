//! Who is connected, who waits for a run, and which runs wait for somebody.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nylorun_ports::run::RunEnd;
use tokio::sync::oneshot;

use super::run::{Run, Stage};
use crate::channel::Channel;

/// The number of a connection, counted from 1.
pub(super) type ConnectionId = u64;

/// All of a server's lists.
#[derive(Default)]
pub(super) struct State {
    standing: Standing,
    last_connection: ConnectionId,
    connections: HashMap<ConnectionId, Channel>,
    /// Leases that wait for a run, the oldest first.
    leases: VecDeque<Waiting>,
    /// Runs that wait for a lease, the oldest first.
    offers: VecDeque<Arc<Run>>,
    /// Runs that were handed over, each with the connection that may act on it.
    held: HashMap<String, (ConnectionId, Arc<Run>)>,
}

#[derive(Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Open,
    Closed,
}

struct Waiting {
    connection: ConnectionId,
    grant: oneshot::Sender<Arc<Run>>,
}

impl State {
    pub(super) fn next_connection(&mut self) -> ConnectionId {
        self.last_connection += 1;
        self.last_connection
    }

    pub(super) fn connected(&mut self, id: ConnectionId, channel: Channel) {
        self.connections.insert(id, channel);
    }

    /// Forgets a connection: its waiting leases go, and its runs are lost.
    pub(super) fn disconnected(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.leases.retain(|waiting| waiting.connection != id);
        let lost = self.held.values().filter(|(connection, _)| *connection == id);
        for (_, run) in lost {
            run.end(RunEnd::ConnectionLost);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.standing == Standing::Closed
    }

    /// Closes it: nobody is served any more. Answers whose channels are to be closed.
    pub(super) fn close(&mut self) -> Vec<Channel> {
        self.standing = Standing::Closed;
        self.leases.clear();
        for run in self.offers.drain(..) {
            run.end(unavailable());
        }
        self.connections.drain().map(|(_, channel)| channel).collect()
    }

    /// Offers a run. `false` when the server is closed.
    pub(super) fn offer(&mut self, run: &Arc<Run>) -> bool {
        if self.is_closed() {
            return false;
        }
        self.offers.push_back(Arc::clone(run));
        self.pair();
        true
    }

    /// Lets a connection wait for a run.
    pub(super) fn lease(&mut self, connection: ConnectionId) -> oneshot::Receiver<Arc<Run>> {
        let (grant, receiver) = oneshot::channel();
        if self.connections.contains_key(&connection) {
            self.leases.push_back(Waiting { connection, grant });
            self.pair();
        }
        receiver
    }

    /// How many leases wait.
    pub(super) fn waiting(&self) -> usize {
        self.leases.iter().filter(|waiting| !waiting.grant.is_closed()).count()
    }

    /// Hands offers over, both lists in their order.
    fn pair(&mut self) {
        while let Some(run) = self.offers.front() {
            let Some(Waiting { connection, grant }) = self.leases.pop_front() else { return };
            if grant.send(Arc::clone(run)).is_ok() {
                self.held.insert(run.id().to_owned(), (connection, Arc::clone(run)));
                self.offers.pop_front();
            }
        }
    }

    /// Takes an offer back. `false` when it was handed over.
    pub(super) fn withdraw(&mut self, run: &Arc<Run>) -> bool {
        let before = self.offers.len();
        self.offers.retain(|offered| offered.id() != run.id());
        self.offers.len() < before
    }

    /// Takes a run back from a lease that was given up when it was handed over: it is the next to be offered.
    pub(super) fn give_back(&mut self, run: Arc<Run>) {
        self.held.remove(run.id());
        let is_offered = matches!(&*run.stage().borrow(), Stage::Offered);
        if is_offered && !self.is_closed() {
            self.offers.push_front(run);
            self.pair();
        } else {
            run.end(unavailable());
        }
    }

    /// The run of this id, when this connection may act on it, and its channel.
    pub(super) fn held(&self, connection: ConnectionId, run_id: &str) -> Option<&Arc<Run>> {
        self.held.get(run_id).filter(|(holder, _)| *holder == connection).map(|(_, run)| run)
    }

    pub(super) fn channel(&self, connection: ConnectionId) -> Option<Channel> {
        self.connections.get(&connection).cloned()
    }

    /// Forgets a run that is over.
    pub(super) fn forget(&mut self, run: &Arc<Run>) {
        self.withdraw(run);
        self.held.remove(run.id());
    }
}

fn unavailable() -> RunEnd {
    RunEnd::Released(nylorun_ports::run::CoreError::Unavailable("the harness server is closed".to_owned()))
}
