//! One concrete store over SQLite and PostgreSQL: it executes decided changes and answers reads. One file a resource.
//!
//! Absent here, on purpose: rules. What may happen is decided in `domain`; a change that finds its precondition gone
//! fails as a whole, and its caller loads and decides again.

pub mod db;
mod migrate;

mod agent;
mod budget;
mod checkpoint;
mod command;
mod crossing;
mod direct_call;
mod effect;
mod event;
mod queue;
mod reset;
mod retention;
mod rows;
mod session;
mod session_list;
mod sharing;
mod snapshot;
mod tenant;
mod tenant_write;
mod usage;
mod usage_reads;
mod wake;
mod workspace;

use std::sync::Arc;

use db::Dialect;
use nylorun_domain::id::TenantId;
use nylorun_wire::event::UnreadableEvent;

pub use agent::AgentRow;
pub use budget::ModelSettings;
pub use crossing::{CrossingRow, TURN_NOT_HELD};
pub use db::{Counts, Db, DbError, Fault, OpenError, WriteError};
pub use event::StoredEvent;
pub use migrate::schema_version;
pub use retention::{AgedSession, Removal};
pub use session::STALE_SESSION;
pub use session_list::{Effects, ListedSession, SessionFilter, SessionPage, SessionPlace};
pub use sharing::{NO_WORKSPACE_OWNER, WORKSPACE_HELD};
pub use snapshot::Snapshot;
pub use tenant::{NO_PROVIDER, NewTenant, PrincipalRow, ProviderRow, SealedColumns, TENANT_CREATED_AT, TENANT_NAME};
pub use usage_reads::{ExportedCall, SpendOf};

/// The setting that makes the fixture model answer, `true`.
pub const FIXTURE_MODEL: &str = "model.fixture";

/// The tenant's store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    db: Arc<Db>,
    tenant: TenantId,
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer, or holds what this build does not know.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A stored event cannot be read back.
    #[error(transparent)]
    Event(#[from] UnreadableEvent),
}

impl StoreError {
    /// What it says about trying the same again.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Db(error) => error.fault(),
            Self::Event(_) => Fault::ForGood,
        }
    }

    /// The words of what failed, without the statement.
    pub fn reason(&self) -> String {
        match self {
            Self::Db(error) => error.reason(),
            Self::Event(error) => error.to_string(),
        }
    }
}

impl Store {
    /// The tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The database below.
    pub fn db(&self) -> &Arc<Db> {
        &self.db
    }
}

/// Every SQL text of this crate as this database speaks it, for the test that prepares each on both. Multi-row inserts
/// stand for one and for three rows.
pub fn all_sql(dialect: Dialect) -> Vec<String> {
    let fixed = [
        agent::SQL,
        budget::SQL,
        checkpoint::SQL,
        command::SQL,
        crossing::SQL,
        direct_call::SQL,
        effect::SQL,
        event::SQL,
        queue::SQL,
        retention::SQL,
        session::SQL,
        session_list::SQL,
        sharing::SQL,
        snapshot::SQL,
        tenant::SQL,
        tenant_write::SQL,
        wake::SQL,
        workspace::SQL,
    ];
    let multi_row = [1, 3].into_iter().flat_map(|rows| {
        [budget::insert_sql(rows), effect::insert_sql(rows), event::insert_sql(rows), usage::insert_sql(rows, dialect)]
    });
    let reads = usage_reads::sql(dialect).into_iter().chain(reset::sql());
    fixed.into_iter().flatten().copied().chain(reads).map(str::to_owned).chain(multi_row).collect()
}
