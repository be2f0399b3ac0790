//! The harness of the runtime's own process: frames pass by reference.

use std::sync::Arc;

use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::blobs::Blobs;
use nylorun_ports::http_tools::HttpTools;
use nylorun_ports::models::ModelGate;
use nylorun_ports::run::{Harness, RunCore, RunEnd, TurnStart};
use nylorun_ports::workspaces::Workspaces;

use crate::drive::Driver;

/// Runs segments in this process.
#[derive(Clone)]
pub struct InProcess {
    gates: Gates,
}

/// What carries effects out.
#[derive(Clone)]
pub(crate) struct Gates {
    pub(crate) model: Arc<dyn ModelGate>,
    pub(crate) workspaces: Arc<dyn Workspaces>,
    pub(crate) http_tools: Arc<dyn HttpTools>,
    /// The files of skills.
    pub(crate) blobs: Arc<dyn Blobs>,
}

impl InProcess {
    /// A harness whose effects are carried out by these.
    pub fn new(
        model: Arc<dyn ModelGate>,
        workspaces: Arc<dyn Workspaces>,
        http_tools: Arc<dyn HttpTools>,
        blobs: Arc<dyn Blobs>,
    ) -> Self {
        Self { gates: Gates { model, workspaces, http_tools, blobs } }
    }
}

impl Harness for InProcess {
    fn run(&self, start: TurnStart, core: Arc<dyn RunCore>, abort: Abort) -> BoxFuture<'_, RunEnd> {
        Box::pin(Driver::new(self.gates.clone(), start, core, abort).drive())
    }
}
