//! The tidy rules. Each rule is a function from what it reads to a list of findings, so that a test can hand it a bad
//! sample.

mod budgets;
mod crates;
mod dependencies;
mod errors;
mod links;
mod machine_paths;
mod ratchet;
mod rust;
mod source;
mod tree;

use std::fmt;
use std::path::Path;

/// One thing that is not as the rules want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A path inside the repository, with `:line` where a line is known, or the name of a crate.
    pub place: String,
    /// What is wrong and what to do, as one sentence without a full stop.
    pub text: String,
}

impl Finding {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }

    fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), text)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Why the rules could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {path}")]
    Read {
        /// Where.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// `cargo metadata` failed or printed something else.
    #[error("cargo metadata: {0}")]
    Metadata(String),
}

/// Every finding of every rule over the repository at `root`, in the order of the rules.
///
/// # Errors
/// [`Error`] when the repository cannot be read; a file that is no valid Rust is a finding, not an error.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let tree = tree::Tree::read(root)?;
    let packages = crates::read_packages(root)?;
    let (sources, mut findings) = rust::read_all(&tree);

    findings.extend(crates::check_edges(&packages));
    findings.extend(crates::check_exclusive(&packages));
    findings.extend(dependencies::check_reasons(&tree, &packages));
    findings.extend(dependencies::check_named(&packages, &sources));
    findings.extend(budgets::check(&sources, &ratchet::read(&tree)));
    findings.extend(source::check(&sources));
    findings.extend(errors::check(&tree, &sources));
    findings.extend(links::check(&tree));
    findings.extend(machine_paths::check(&tree));
    Ok(findings)
}
