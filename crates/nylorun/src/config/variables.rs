//! The `NYLORUN_` variables of the environment: each is read strictly, and what has no effect is said.

use std::ffi::OsString;

use crate::cli::Failure;

/// What a server reads.
const SERVER: &[&str] = &[
    "NYLORUN_HOME",
    "NYLORUN_LISTEN_HOST",
    "NYLORUN_LISTEN_PORT",
    "NYLORUN_ALLOWED_HOSTS",
    "NYLORUN_DATABASE_URL",
    "NYLORUN_ENDPOINT_HTTP",
    "NYLORUN_ENDPOINT_PRIVATE",
    "NYLORUN_SANDBOX",
    "NYLORUN_WORKSPACE_QUOTA",
    "NYLORUN_WORKSPACE_FILES",
    "NYLORUN_WORKSPACES_LIVE",
    "NYLORUN_TENANT_ID",
    "NYLORUN_TENANT_NAME",
    "NYLORUN_MANAGEMENT_KEY_FILE",
    "NYLORUN_MODELS_FILE",
    "NYLORUN_IDENTITY_FILE",
    "NYLORUN_PUBLIC_URL",
    "NYLORUN_HARNESS",
    "NYLORUN_STOP_GRACE",
    "NYLORUN_YIELD_STEPS",
    "NYLORUN_YIELD_AFTER",
    "NYLORUN_STALL_LIMIT",
];

/// What is read elsewhere: the log's filter and format, and what the command line reads to reach a server.
const OTHERS: &[&str] = &[
    "NYLORUN_LOG",
    "NYLORUN_LOG_FORMAT",
    "NYLORUN_RUNTIME_URL",
    "NYLORUN_SERVER_KEY",
    "NYLORUN_MANAGEMENT_KEY",
    "NYLORUN_IMPLEMENTATION_VERSION",
];

/// Beginnings of names that belong to tests and scripts of the project.
const OF_TESTS: &[&str] = &["NYLORUN_TEST_", "NYLORUN_CRASH_", "NYLORUN_DRILL_", "NYLORUN_POSTGRES_"];

/// What deployments of the whole system set and this version does not read yet (engine f.2).
const NOT_YET: &[&str] = &[
    "NYLORUN_RESTATE_INGRESS_URL",
    "NYLORUN_RESTATE_ADMIN_URL",
    "NYLORUN_RESTATE_IDENTITY_KEY",
    "NYLORUN_WORKER_URL",
    "NYLORUN_WORKER_VERSION",
    "NYLORUN_S2_ENDPOINT",
    "NYLORUN_S2_TOKEN",
    "NYLORUN_WORKSPACE_STORE_URL",
    "NYLORUN_PACKING",
    "NYLORUN_GATES_LISTEN_HOST",
    "NYLORUN_GATES_LISTEN_PORT",
    "NYLORUN_GATES_ALLOWED_HOSTS",
    "NYLORUN_GATES_TOKEN",
    "NYLORUN_GATES_URL",
    "NYLORUN_KEYS_URL",
    "NYLORUN_EGRESS_LISTEN_HOST",
    "NYLORUN_EGRESS_LISTEN_PORT",
    "NYLORUN_HARNESS_LISTEN_HOST",
    "NYLORUN_HARNESS_LISTEN_PORT",
    "NYLORUN_HARNESS_ALLOWED_HOSTS",
    "NYLORUN_HARNESS_TOKEN",
    "NYLORUN_HARNESS_URL",
    "NYLORUN_HARNESS_ROOT",
    "NYLORUN_HARNESS_HEALTH_PORT",
    "NYLORUN_SANDBOXES_URL",
    "NYLORUN_SANDBOXES_TOKEN",
    "NYLORUN_SANDBOX_HARNESS_IMAGE",
    "NYLORUN_SANDBOX_KIND",
    "NYLORUN_SANDBOX_ID",
    "NYLORUN_SANDBOX_JOIN_FILE",
    "NYLORUN_POD_UID",
    "NYLORUN_EGRESS_PROXY",
    "NYLORUN_OBJECT_STORE_ENDPOINT",
    "NYLORUN_OBJECT_STORE_BUCKET",
    "NYLORUN_OBJECT_STORE_REGION",
    "NYLORUN_OBJECT_STORE_ACCESS_KEY",
    "NYLORUN_OBJECT_STORE_SECRET_KEY",
    "NYLORUN_ENDPOINT_LOOPBACK",
];

/// The variables of an environment.
pub(crate) struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<OsString>,
}

/// Those of this process.
pub(crate) const OF_PROCESS: Variables<'static> = Variables { get: &|name| std::env::var_os(name) };

impl<'a> Variables<'a> {
    /// Those that `get` answers.
    #[cfg(test)]
    pub(crate) fn of(get: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { get }
    }

    /// The value of a variable; `None` when it is unset or empty.
    ///
    /// # Errors
    /// It is not Unicode text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match (self.get)(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            // The value is not repeated: it may be a secret.
            Some(Err(_)) => Err(Failure::usage(format!("{name} cannot be used: its value is not UTF-8 text"))),
        }
    }
}

/// A variable whose value cannot be used: its name, its value, and what is allowed in its place.
pub(crate) fn unusable(name: &str, value: &str, allowed: &str) -> Failure {
    Failure::usage(format!("{name}={value:?} cannot be used")).remedy(format!("set it to {allowed}, or leave it out"))
}

/// A variable that is set and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    /// Its name.
    pub(crate) name: String,
    /// Why it has none.
    pub(crate) why: &'static str,
}

/// Variables of this process that have no effect, by name.
pub(crate) fn idle_of_process() -> Vec<Idle> {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    idle(set.filter_map(|(name, _)| name.into_string().ok()))
}

fn idle(names: impl Iterator<Item = String>) -> Vec<Idle> {
    let mut found: Vec<Idle> = names.filter_map(|name| Some(Idle { why: why_idle(&name)?, name })).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn why_idle(name: &str) -> Option<&'static str> {
    let is_ours = name.starts_with("NYLORUN_") && !OF_TESTS.iter().any(|start| name.starts_with(start));
    if !is_ours || SERVER.contains(&name) || OTHERS.contains(&name) {
        return None;
    }
    if name.starts_with("NYLORUN_RESOLVER_") {
        return Some("it was removed");
    }
    Some(if NOT_YET.contains(&name) { "this version does not read it yet" } else { "no variable has this name" })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn what_has_no_effect_is_found() {
        let names = [
            "PATH",
            "NYLORUN_HOME",
            "NYLORUN_SERVER_KEY",
            "NYLORUN_TEST_POSTGRES_URL",
            "NYLORUN_SANBOX",
            "NYLORUN_RESOLVER_URL",
            "NYLORUN_S2_ENDPOINT",
        ];
        let found = idle(names.into_iter().map(str::to_owned));
        let expected = [
            ("NYLORUN_RESOLVER_URL", "it was removed"),
            ("NYLORUN_S2_ENDPOINT", "this version does not read it yet"),
            ("NYLORUN_SANBOX", "no variable has this name"),
        ];
        assert_eq!(found, expected.map(|(name, why)| Idle { name: name.to_owned(), why }));
    }

    #[test]
    fn empty_is_unset_and_bytes_that_are_no_text_are_refused() {
        let get = |name: &str| match name {
            "EMPTY" => Some(OsString::new()),
            "BYTES" => Some(OsString::from_vec(vec![0xff])),
            _ => None,
        };
        let variables = Variables::of(&get);
        assert_eq!(variables.text("EMPTY").unwrap(), None);
        assert_eq!(variables.text("OTHER").unwrap(), None);
        let refused = variables.text("BYTES").unwrap_err();
        assert_eq!(refused.exit.number(), 2);
        assert_eq!(refused.to_string(), "BYTES cannot be used: its value is not UTF-8 text");
    }
}
