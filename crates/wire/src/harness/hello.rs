//! The first request of a connection (engine a.4).

use nylorun_domain::id::TenantId;

use super::shape::{Nullable, shapes};

shapes! {
    /// `hello`: who the harness is.
    Hello {
        /// The version of the API that it speaks.
        api: i64 = "api",
        /// Its name.
        name: String = "name",
        /// Its version.
        version: String = "version",
        /// What it can do beside running turns.
        capabilities: Capabilities = "capabilities",
    }

    /// What a harness can do beside running turns.
    Capabilities {
        /// Whether it answers `workspace.*`.
        workspace: Option<bool> = "workspace",
    }

    /// The answer to `hello`.
    Welcome {
        /// The version of the API that core speaks.
        api: i64 = "api",
        /// The tenant whose turns it offers.
        tenant_id: TenantId = "tenantId",
        /// What it prefers of workspaces.
        sandbox: SandboxPreference = "sandbox",
        /// How often each run is to be renewed, in milliseconds, above 0.
        renew_every_ms: u64 = "renewEveryMs",
    }

    /// Which backend workspaces are wanted on.
    SandboxPreference {
        /// Its name; `null` when the harness chooses.
        backend: Nullable<String> = "backend",
    }
}
