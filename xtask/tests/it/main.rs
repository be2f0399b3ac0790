//! The tidy rules hold for this repository.

use std::path::Path;

#[test]
fn the_repository_is_tidy() {
    let findings = xtask::tidy::check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{} findings:\n{}", texts.len(), texts.join("\n"));
}
