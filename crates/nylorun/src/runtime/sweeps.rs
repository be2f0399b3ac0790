//! Housekeeping that rides on the sweep.

use std::sync::Arc;

use nylorun_app::App;
use nylorun_domain::time::Millis;
use nylorun_ports::BoxFuture;
use nylorun_turns::{Maintenance, StoreCrossings};
use nylorun_workspace::WorkspaceManager;

/// All of it.
pub(super) fn maintenance(
    workspaces: &WorkspaceManager,
    crossings: Arc<StoreCrossings>,
    app: &App,
) -> Vec<Arc<dyn Maintenance>> {
    vec![Arc::new(WorkspaceSweep(workspaces.clone())), crossings, Arc::new(RetentionSweep(app.clone()))]
}

/// The workspaces' housekeeping: idle stops, what a restart left behind, what has no owner any more.
struct WorkspaceSweep(WorkspaceManager);

impl Maintenance for WorkspaceSweep {
    fn sweep(&self, now: Millis) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.after_restart().await;
            self.0.reconcile().await;
            self.0.stop_idle(now).await;
        })
    }
}

/// Removes what is older than the tenant keeps it.
struct RetentionSweep(App);

impl Maintenance for RetentionSweep {
    fn sweep(&self, now: Millis) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.0.sweep_retention(now).await {
                tracing::warn!(%error, "what is too old could not be removed; the next sweep tries again");
            }
        })
    }
}
