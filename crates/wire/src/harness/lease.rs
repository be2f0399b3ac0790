//! Leases: how a run comes to a harness, is kept, and is given back (engine a.3, a.4).

use nylorun_domain::id::{SessionId, TurnId};

use super::shape::{Fields, Malformed, Member as _, Shape, shapes, words};
use super::start::TurnStart;
use crate::writer::Object;

shapes! {
    /// `lease`: asks for a run, and waits for one.
    Lease {
        /// How many more the harness could take, at least 1.
        slots: Option<Slots> = "slots",
    }

    /// A run, as it is handed over.
    RunGrant {
        /// Its id, by which every call names it.
        run_id: String = "runId",
        /// The session.
        session_id: SessionId = "sessionId",
        /// The turn.
        turn_id: TurnId = "turnId",
        /// The epoch under which it writes.
        epoch: i64 = "epoch",
        /// Its token for gates that are elsewhere.
        token: Option<String> = "token",
        /// When the token ends, in milliseconds since 1970.
        token_expires_at: Option<i64> = "tokenExpiresAt",
    }

    /// The answer to `lease`.
    Leased {
        /// The run.
        run: RunGrant = "run",
        /// What it starts from.
        input: TurnStart = "input",
    }

    /// `lease.renew`
    Renew {
        /// The run.
        run_id: String = "runId",
    }

    /// `lease.release`: the run is given back without an output.
    Release {
        /// The run.
        run_id: String = "runId",
        /// Why.
        reason: ReleaseReason = "reason",
    }

    /// The message `cancel`: the run is to end.
    CancelRun {
        /// The run.
        run_id: String = "runId",
        /// Why.
        reason: CancelReason = "reason",
        /// More about it, for a person.
        message: Option<String> = "message",
    }
}

impl CancelRun {
    /// The message's name.
    pub const METHOD: &'static str = "cancel";
}

words! {
    /// Why a run is given back.
    ReleaseReason {
        /// The harness stops, or was told to: outcomes in hand are recorded, nothing is settled.
        Shutdown = "shutdown",
        /// The harness heard that another owner has the session.
        OwnershipLost = "ownership.lost",
        /// The harness lost its connection and found it again.
        ConnectionLost = "connection.lost",
    }

    /// Why a run is to end (engine b.4, Abort kinds).
    CancelReason {
        /// The turn was cancelled.
        Cancel = "cancel",
        /// Core stops.
        Shutdown = "shutdown",
        /// The turn ran out of time, or the grace of a stop is over.
        Deadline = "deadline",
        /// Another owner has the session.
        OwnershipLost = "ownership.lost",
    }
}

/// A number of runs, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots(pub std::num::NonZeroU32);

impl Shape for Slots {
    fn write(&self, out: &mut String) {
        self.0.get().write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let slots = std::num::NonZeroU32::new(u32::read(text)?);
        slots.map(Self).ok_or_else(|| Malformed::new("must be above 0"))
    }
}

/// The answer to `lease.renew`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// `{ok: true, token?, tokenExpiresAt?}`
    Held {
        /// A token that replaces the grant's.
        token: Option<String>,
        /// When that ends, in milliseconds since 1970.
        token_expires_at: Option<i64>,
    },
    /// `{ok: false}`: another owner has the session.
    Lost,
}

impl Shape for Renewed {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        match self {
            Self::Held { token, token_expires_at } => {
                true.put(&mut object, "ok");
                token.put(&mut object, "token");
                token_expires_at.put(&mut object, "tokenExpiresAt");
            }
            Self::Lost => false.put(&mut object, "ok"),
        }
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let read = if fields.get("ok")? {
            Self::Held { token: fields.get("token")?, token_expires_at: fields.get("tokenExpiresAt")? }
        } else {
            Self::Lost
        };
        fields.end().map(|()| read)
    }
}
