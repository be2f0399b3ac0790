//! Which crate may use which: the arrows of ARCHITECTURE.md, read from `cargo metadata`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Error, Finding};

/// What begins the name of each of our crates.
const OURS: &str = "nylorun-";

/// One row of the table: a crate, the crates of ours that it may use, and why it may use no more.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    reason: &'static str,
}

const fn layer(name: &'static str, may_use: &'static [&'static str], reason: &'static str) -> Layer {
    Layer { name, may_use, reason }
}

/// The table, lowest first. A crate that is not in it fails; so does an edge that its row does not list.
const LAYERS: [Layer; 20] = [
    layer("domain", &[], "nouns and pure decisions: everything stands on it, so it stands on nothing"),
    layer("engine", &["domain"], "a pure state machine: it asks for effects and reaches none"),
    layer("wire", &["domain"], "converts between JSON and domain types, and decides nothing"),
    layer("ports", &["domain"], "traits over domain types, so that an adapter needs no layer above it"),
    layer("store", &["domain", "wire"], "executes changes; of wire it uses the event codec only"),
    layer("keys", &["domain", "ports", "store"], "keeps sealed keys in the store and hands out answers, never keys"),
    layer("identity", &["domain", "ports"], "checks tokens of issuers; key sets come by a port"),
    layer("blobs", &["domain", "ports"], "keeps bytes under keys; what they mean is known above"),
    layer("gates", &["domain", "ports"], "the way out: it knows neither the store nor the workspace"),
    layer("workspace", &["domain", "ports"], "the manager keeps its records through a port and reaches no store"),
    layer("harness", &["domain", "engine", "wire", "ports"], "drives the engine; it commits through a port"),
    layer("turns", &["domain", "engine", "wire", "ports", "store"], "ownership and journal; no HTTP, no keys"),
    layer("app", &["domain", "wire", "ports", "store", "turns"], "use cases: load, decide, commit"),
    layer("server", &["app", "wire", "domain"], "the edge: it reaches state only through use cases"),
    layer("client", &["domain", "wire"], "what a user of the API has: JSON and its forms, nothing of the inside"),
    layer("testkit", &["domain", "wire", "ports", "store", "client"], "help for tests; nothing that ships uses it"),
    layer("nylorun", &[EVERYTHING], "the binary composes all the others"),
    layer("bench", &["domain", "wire", "engine", "client", "testkit"], "measures the binary from outside"),
    layer(
        "fuzz",
        &["domain", "wire", "ports", "identity", "gates", "client"],
        "feeds readers; what it may reach shows what is checked",
    ),
    layer("xtask", &[], "checks the repository from outside"),
];

/// Stands for all crates of ours.
const EVERYTHING: &str = "*";

/// Every crate may use this one in its tests, and none otherwise.
const TEST_HELP: &str = "testkit";

/// One outside crate that only some of ours may use.
struct Exclusive {
    dependency: &'static str,
    only_in: &'static [&'static str],
    reason: &'static str,
}

const fn exclusive(dependency: &'static str, only_in: &'static [&'static str], reason: &'static str) -> Exclusive {
    Exclusive { dependency, only_in, reason }
}

/// Outside crates whose spread would blur a layer.
const EXCLUSIVE: [Exclusive; 8] = [
    exclusive("axum", &["testkit"], "stub providers; the runtime itself answers everything by its own pipeline"),
    exclusive("hyper", &["server", "testkit"], "HTTP ends at the edge"),
    exclusive("rusqlite", &["store", "bench"], "SQL stays in the store; bench measures a bare commit beside a turn"),
    exclusive("tokio-postgres", &["store", "bench"], "SQL stays in the store; bench measures a bare commit"),
    exclusive("reqwest", &["gates", "client", "testkit", "bench"], "calls out go through the gates' guarded client"),
    exclusive("ring", &["keys", "identity"], "sealed keys have one reader, and public ones another"),
    exclusive("bashkit", &["workspace"], "a shell runs only inside a workspace"),
    exclusive("clap", &["nylorun", "bench"], "the command line is the binary's"),
];

/// Crates that hold no I/O, clock or randomness, and the only outside crates that they may use.
const PURE: [(&str, &[&str]); 2] =
    [("domain", &["ryu-js", "sha2", "regex", "base64", "thiserror", "url"]), ("engine", &["sha2", "thiserror"])];

/// One crate of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Package {
    /// Its name without [`OURS`].
    pub(super) name: String,
    /// Its folder, from the repository's root.
    pub(super) folder: String,
    /// What it declares.
    pub(super) dependencies: Vec<Dependency>,
}

/// When a dependency is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// In what ships, or in its build script.
    Shipped,
    /// In tests only.
    Tests,
}

/// One declared dependency.
#[derive(Clone, Debug)]
pub(super) struct Dependency {
    /// Its name, [`OURS`] included.
    pub(super) name: String,
    /// When it is used.
    pub(super) when: When,
}

impl Dependency {
    fn ours(&self) -> Option<&str> {
        self.name.strip_prefix(OURS)
    }
}

/// The crates of the workspace, as cargo sees them.
pub(super) fn read_packages(root: &Path) -> Result<Vec<Package>, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(root.join("Cargo.toml"));
    let output = command.output().map_err(|error| Error::Metadata(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Metadata(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| Error::Metadata(error.to_string()))?;
    let root = text(&metadata["workspace_root"]);
    Ok(list(&metadata["packages"]).map(|package| parse_package(package, root)).collect())
}

fn parse_package(package: &Value, root: &str) -> Package {
    let manifest = text(&package["manifest_path"]);
    let inside = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
    let dependencies = list(&package["dependencies"]).map(|dependency| Dependency {
        name: text(&dependency["name"]).into(),
        when: if dependency["kind"] == "dev" { When::Tests } else { When::Shipped },
    });
    Package {
        name: text(&package["name"]).trim_start_matches(OURS).into(),
        folder: inside.trim_end_matches("/Cargo.toml").into(),
        dependencies: dependencies.collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Edges between our crates that the table does not list, and crates that it does not know.
pub(super) fn check_edges(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            let text = "is not in the table of layers: add its row to xtask/src/tidy/crates.rs and ARCHITECTURE.md";
            findings.push(Finding::new(&package.name, text));
            continue;
        };
        let forbidden = package.dependencies.iter().filter_map(|dependency| {
            let used = dependency.ours()?;
            (!may_use(layer, used, dependency.when)).then_some(used)
        });
        findings.extend(forbidden.map(|used| {
            Finding::new(&package.name, format!("may not use {used} ({} is {})", package.name, layer.reason))
        }));
    }
    findings
}

fn may_use(layer: &Layer, used: &str, when: When) -> bool {
    match (used == TEST_HELP, when) {
        (true, When::Tests) => true,
        (true, When::Shipped) => layer.may_use.contains(&TEST_HELP),
        (false, When::Tests) => stands_on(layer, used),
        (false, When::Shipped) => layer.may_use.iter().any(|allowed| *allowed == EVERYTHING || *allowed == used),
    }
}

/// Whether `used` is below the layer, at any depth: tests may build the real things that their crate stands on.
fn stands_on(layer: &Layer, used: &str) -> bool {
    layer.may_use.iter().any(|allowed| {
        let below = || LAYERS.iter().find(|below| below.name == *allowed);
        *allowed == EVERYTHING || *allowed == used || below().is_some_and(|below| stands_on(below, used))
    })
}

/// Outside crates used where they are not wanted.
pub(super) fn check_exclusive(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        for dependency in package.dependencies.iter().filter(|dependency| dependency.when == When::Shipped) {
            let rule = EXCLUSIVE.iter().find(|rule| rule.dependency == dependency.name);
            if let Some(rule) = rule.filter(|rule| !rule.only_in.contains(&package.name.as_str())) {
                let text =
                    format!("may not use {}, only {} may: {}", rule.dependency, rule.only_in.join(", "), rule.reason);
                findings.push(Finding::new(&package.name, text));
            }
            let pure = PURE.iter().find(|(name, _)| *name == package.name);
            if pure
                .is_some_and(|(_, allowed)| dependency.ours().is_none() && !allowed.contains(&dependency.name.as_str()))
            {
                let text = format!("is pure and may not use {}: no I/O, no clock, no randomness", dependency.name);
                findings.push(Finding::new(&package.name, text));
            }
        }
    }
    findings
}

#[cfg(test)]
pub(super) fn sample(name: &str, shipped: &[&str], tests: &[&str]) -> Package {
    let of = |names: &[&str], when| -> Vec<Dependency> {
        names.iter().map(|name| Dependency { name: (*name).into(), when }).collect()
    };
    let dependencies = [of(shipped, When::Shipped), of(tests, When::Tests)].concat();
    Package { name: name.into(), folder: format!("crates/{name}"), dependencies }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Package, check_edges, check_exclusive, sample};

    fn texts(check: fn(&[Package]) -> Vec<Finding>, package: Package) -> Vec<String> {
        check(&[package]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_upward_is_found() {
        let found = texts(check_edges, sample("domain", &["nylorun-store"], &[]));
        let reason = "nouns and pure decisions: everything stands on it, so it stands on nothing";
        assert_eq!(found, [format!("domain: may not use store (domain is {reason})")]);
    }

    #[test]
    fn the_edges_of_the_table_pass() {
        assert_eq!(texts(check_edges, sample("keys", &["nylorun-domain", "nylorun-store"], &[])), Vec::<String>::new());
        assert_eq!(texts(check_edges, sample("nylorun", &["nylorun-gates", "serde"], &[])), Vec::<String>::new());
    }

    #[test]
    fn test_help_is_for_tests_only() {
        assert_eq!(texts(check_edges, sample("engine", &[], &["nylorun-testkit"])), Vec::<String>::new());
        assert_eq!(texts(check_edges, sample("engine", &["nylorun-testkit"], &[])).len(), 1);
        assert_eq!(texts(check_edges, sample("engine", &[], &["nylorun-store"])).len(), 1);
    }

    #[test]
    fn tests_may_build_what_their_crate_stands_on() {
        assert_eq!(texts(check_edges, sample("server", &[], &["nylorun-store"])), Vec::<String>::new());
        assert_eq!(texts(check_edges, sample("server", &["nylorun-store"], &[])).len(), 1);
        assert_eq!(texts(check_edges, sample("server", &[], &["nylorun-gates"])).len(), 1);
    }

    #[test]
    fn the_binary_ships_no_test_help() {
        assert_eq!(texts(check_edges, sample("nylorun", &["nylorun-testkit"], &[])).len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert_eq!(texts(check_edges, sample("extra", &[], &[])).len(), 1);
    }

    #[test]
    fn http_and_sql_stay_where_they_belong() {
        let found = texts(check_exclusive, sample("app", &["axum"], &[]));
        let reason = "stub providers; the runtime itself answers everything by its own pipeline";
        assert_eq!(found, [format!("app: may not use axum, only testkit may: {reason}")]);
        assert_eq!(texts(check_exclusive, sample("store", &["rusqlite"], &[])), Vec::<String>::new());
    }

    #[test]
    fn a_pure_crate_may_use_no_runtime() {
        let found = texts(check_exclusive, sample("domain", &["tokio", "sha2"], &[]));
        assert_eq!(found, ["domain: is pure and may not use tokio: no I/O, no clock, no randomness"]);
    }
}
