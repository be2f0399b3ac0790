//! Which harness runs the turns of this process, and how it is reached.

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::id::TenantId;
use nylorun_harness::{Checks, HarnessClient, HarnessClientConfig, HarnessServer, HarnessServerConfig, InProcess};
use nylorun_ports::frames::frame_ports;
use nylorun_ports::run::Harness;
use nylorun_turns::uuid;

use crate::config::HarnessReached;

/// The harness of a runtime.
pub(super) struct RuntimeHarness {
    reached: Arc<dyn Harness>,
    channel: Option<(HarnessServer, HarnessClient)>,
}

impl RuntimeHarness {
    /// This harness, reached as the settings say.
    pub(super) fn start(reached: HarnessReached, tenant: &TenantId, in_process: InProcess) -> Self {
        match reached {
            HarnessReached::ByReference => Self { reached: Arc::new(in_process), channel: None },
            HarnessReached::ThroughJson => {
                let server = HarnessServer::new(HarnessServerConfig::new(tenant.clone(), uuid));
                let (core, harness) = frame_ports();
                server.connect(core, Checks::On);
                let config = HarnessClientConfig {
                    name: "nylorun".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    max_runs: None,
                    checks: Checks::On,
                };
                let client = HarnessClient::start(harness, Arc::new(in_process), config);
                Self { reached: Arc::new(server.clone()), channel: Some((server, client)) }
            }
        }
    }

    /// What the scheduler hands segments to.
    pub(super) fn reached(&self) -> Arc<dyn Harness> {
        Arc::clone(&self.reached)
    }

    /// Closes the channel, once no run is left.
    pub(super) async fn stop(&mut self) {
        if let Some((server, client)) = self.channel.take() {
            client.stop(Duration::from_secs(5)).await;
            server.close();
        }
    }
}
