//! Use cases, one file a resource: load, decide, commit. The server calls nothing else.
//!
//! Absent here, on purpose: HTTP, SQL, and rules that `domain` can decide.

mod access;
mod agent;
mod budget;
mod command;
mod effect;
mod error;
mod event;
mod file;
mod key;
mod model;
mod queue;
mod reset;
mod retention;
mod sandbox;
mod session;
mod session_list;
mod tenant;
mod tenant_write;
mod usage;
mod workspace;

use std::sync::Arc;

use nylorun_domain::id::TenantId;
use nylorun_ports::blobs::Blobs;
use nylorun_ports::issuers::TrustedIssuers;
use nylorun_ports::model_vault::ModelVault;
use nylorun_ports::workspaces::{WorkspaceRemoval, WorkspaceReports, Workspaces};
use nylorun_store::Store;
use nylorun_turns::{Committer, Live, Scheduler};
use nylorun_wire::model::CatalogueProvider;

use access::KeyWatches;
use reset::Resets;
use retention::Round;

pub use error::Error;
pub use event::{Follower, Frame, HistoryPage};
pub use file::StoredFile;
pub use nylorun_domain as domain;
pub use nylorun_ports::blobs::{BlobBody, BodyError, Placed};
pub use nylorun_ports::issuers::TokenRefusal;
pub use nylorun_store::{Effects, SessionPlace, StoredEvent};
pub use nylorun_turns::{LiveDelta, Shared};
pub use session_list::{SessionQuery, SessionsFound};
pub use tenant::Checks;
pub use usage::{CallPlace, CallsFound, Exported, LedgerPlace, SessionUsage, UsageOf};

/// What the use cases work with.
pub struct Parts {
    /// The tenant's store.
    pub store: Store,
    /// Where observers hear.
    pub live: Live,
    /// Runs turns.
    pub scheduler: Scheduler,
    /// Runs workspace tools.
    pub workspaces: Arc<dyn Workspaces>,
    /// Removes workspaces.
    pub removal: Arc<dyn WorkspaceRemoval>,
    /// Keeps definition files.
    pub blobs: Arc<dyn Blobs>,
    /// Tells which backends of workspaces there are.
    pub backends: Arc<dyn WorkspaceReports>,
    /// Seals providers' keys.
    pub vault: Arc<dyn ModelVault>,
    /// Whose tokens are taken.
    pub issuers: Arc<dyn TrustedIssuers>,
    /// Providers and models that this build knows.
    pub catalogue: Vec<CatalogueProvider>,
    /// What belongs to this process.
    pub host: Host,
}

/// What belongs to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `host_` and 26 characters.
    pub id: String,
    /// Where the tenant's files are.
    pub path: String,
}

/// The use cases. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    parts: Parts,
    committer: Committer,
    key_watches: KeyWatches,
    resets: Resets,
    round: Round,
}

impl App {
    /// The use cases over these parts.
    pub fn new(parts: Parts) -> Self {
        let committer = Committer::new(parts.store.clone(), parts.live.clone());
        Self(Arc::new(Inner {
            parts,
            committer,
            key_watches: KeyWatches::default(),
            resets: Resets::default(),
            round: Round::default(),
        }))
    }

    /// The tenant.
    pub fn tenant_id(&self) -> &TenantId {
        self.store().tenant()
    }

    /// This host's id.
    pub fn host_id(&self) -> &str {
        &self.0.parts.host.id
    }

    fn store(&self) -> &Store {
        &self.0.parts.store
    }

    fn parts(&self) -> &Parts {
        &self.0.parts
    }

    fn committer(&self) -> &Committer {
        &self.0.committer
    }

    fn round(&self) -> &Round {
        &self.0.round
    }

    fn resets(&self) -> &Resets {
        &self.0.resets
    }

    fn key_watches(&self) -> &KeyWatches {
        &self.0.key_watches
    }
}
