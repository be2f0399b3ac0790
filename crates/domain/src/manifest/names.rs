//! Names that must be unique in an agent.

use std::collections::HashSet;

use crate::check::Place;

/// The names that were read so far.
#[derive(Default)]
pub(super) struct Names {
    /// Ids of capabilities.
    pub(super) capabilities: Taken,
    /// Names of tools.
    pub(super) tools: Taken,
    /// Names of skills.
    pub(super) skills: Taken,
    /// Names of MCP servers.
    pub(super) mcp_servers: Taken,
    /// Whether a capability carried a sandbox.
    pub(super) sandbox: bool,
}

/// A set of names that are in use.
#[derive(Default)]
pub(super) struct Taken(HashSet<String>);

impl Taken {
    /// Takes `name`; one that is in use is reported at `place`. `what` begins the message: `Tool name`.
    pub(super) fn take(&mut self, name: &str, what: &str, place: Place<'_>) {
        if !self.0.insert(name.to_owned()) {
            place.custom(format!("{what} \"{name}\" is used twice: it must be unique in the agent"));
        }
    }
}
