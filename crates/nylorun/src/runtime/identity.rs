//! The trusted issuers of the operator's identity file (api 1.6).

use std::path::Path;
use std::sync::Arc;

use nylorun_domain::json::parse;
use nylorun_gates::key_sets::KeySetGate;
use nylorun_gates::outbound::Outbound;
use nylorun_identity::{IdentityFile, Issuers};
use nylorun_ports::key_sets::KeySets;
use nylorun_turns::now;

use crate::cli::{DocumentKind, Failure, Source, read_document};
use crate::config::Config;

/// Reads the identity file. Without one no issuer is trusted.
///
/// # Errors
/// The file cannot be read, or something in it is wrong; the message names it.
pub(super) fn trusted_issuers(config: &Config) -> Result<Issuers, Failure> {
    let Some(path) = &config.identity_file else { return Ok(Issuers::none(now)) };
    let source: Arc<dyn KeySets> = Arc::new(KeySetGate::new(Outbound::new(config.private_targets)));
    let file = read(path, &source)?;
    for name in &file.unknown {
        tracing::warn!(file = %path.display(), name, "a name in the identity file means nothing to this version");
    }
    Ok(file.issuers)
}

fn read(path: &Path, source: &Arc<dyn KeySets>) -> Result<IdentityFile, Failure> {
    let failed = |problem: String| {
        let path = path.display().to_string();
        Failure::usage(format!("NYLORUN_IDENTITY_FILE={path:?} cannot be used: {problem}"))
            .remedy("correct the file (docs/guide/issuers.md describes it), or leave the variable out")
    };
    let document = read_document(&Source::File(path.to_owned()), DocumentKind::IdentityFile)
        .map_err(|failure| failed(failure.to_string()))?;
    let document = parse(&document.to_string()).map_err(|error| failed(error.to_string()))?;
    IdentityFile::read(&document, source, now).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        failed(problems.join("; "))
    })
}
