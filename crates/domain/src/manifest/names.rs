//! Names that must be unique in an agent, and its one sandbox.

use std::collections::HashSet;

use crate::check::Place;
use crate::workspace::WorkspaceSpec;

/// What was read so far.
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
    pub(super) has_sandbox: bool,
    /// The first sandbox that the agent or one that it uses as a tool declares.
    sandbox: Option<WorkspaceSpec>,
}

impl Names {
    /// Notes a sandbox that is declared at `place`, by the agent or by one that it uses as a tool: all must be the
    /// same.
    pub(super) fn note_sandbox(&mut self, spec: &WorkspaceSpec, place: Place<'_>) {
        match &self.sandbox {
            None => self.sandbox = Some(spec.clone()),
            Some(first) if first == spec => {}
            Some(_) => place.custom("All sandboxes that an agent and its agents declare must be the same"),
        }
    }
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
