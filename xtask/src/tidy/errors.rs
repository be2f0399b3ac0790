//! Every error code that a client can meet has a page, `docs/errors/CODE.md`, and every page has a code.

use std::collections::BTreeSet;

use super::Finding;
use super::rust::{Kind, Place, Source};
use super::tree::Tree;

/// Where the codes are declared.
const DECLARED_IN: &str = "crates/wire/src/code.rs";

/// The folder of the pages.
const PAGES: &str = "docs/errors/";

/// The codes of the protocol. They are never renamed, so a code that vanishes from the source is still found here.
const CODES: [&str; 33] = [
    "not_found",
    "credential_required",
    "credential_invalid",
    "token_expired",
    "issuer_unavailable",
    "protocol_unsupported",
    "host_rejected",
    "origin_rejected",
    "unsupported_media_type",
    "subject_invalid",
    "subject_required",
    "scope_required",
    "key_role_mismatch",
    "limit_exceeded",
    "request_rejected",
    "invalid_request",
    "sandbox_not_granted",
    "sandbox_busy",
    "sandbox_unavailable",
    "sandbox_lost",
    "sandbox_expired",
    "placement_refused",
    "definition_files_missing",
    "credential_conflict",
    "mcp_preview_failed",
    "credential_rejected",
    "connection_missing",
    "incompatible_host",
    "internal_error",
    "query_invalid",
    "cursor_invalid",
    "cursor_mismatch",
    "reads_unavailable",
];

/// Codes without a page, pages without a code, and pages that do not begin with their code.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let mut codes: BTreeSet<String> = CODES.iter().map(ToString::to_string).collect();
    codes.extend(sources.iter().filter(|source| source.path == DECLARED_IN).flat_map(declared));

    let mut findings = Vec::new();
    for code in &codes {
        match tree.text(&page(code)) {
            None => findings.push(Finding::new(page(code), "is missing: each error code has a page")),
            Some(text) if !text.starts_with(&format!("# `{code}`\n")) => {
                findings.push(Finding::at(&page(code), 1, format!("does not begin with the heading `{code}`")));
            }
            Some(_) => {}
        }
    }
    let declaring = sources.iter().filter(|source| source.path == DECLARED_IN);
    findings.extend(declaring.flat_map(statuses).filter_map(|(code, status)| {
        let told = tree.text(&page(&code)).is_none_or(|text| text.contains(&status));
        (!told).then(|| Finding::new(page(&code), format!("does not name the HTTP status {status}")))
    }));
    let pages = tree.files.iter().filter_map(|file| file.path.strip_prefix(PAGES)?.strip_suffix(".md"));
    let orphans = pages.filter(|name| *name != "README" && !codes.contains(*name));
    findings.extend(orphans.map(|name| Finding::new(page(name), "is a page of no code: remove it")));
    findings
}

fn page(code: &str) -> String {
    format!("{PAGES}{code}.md")
}

/// The string literals of the declaring file that have the form of a code.
fn declared(source: &Source) -> Vec<String> {
    let literals = source.tokens.iter().filter(|token| token.kind == Kind::Literal && token.place == Place::Shipped);
    let texts = literals.filter_map(|token| token.text.strip_prefix('"')?.strip_suffix('"'));
    texts.filter(|text| is_code(text)).map(str::to_owned).collect()
}

/// Each code with each of its statuses: `"code": 400 403;` in the declaring file.
fn statuses(source: &Source) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut code = None;
    for token in source.tokens.iter().filter(|token| token.place == Place::Shipped) {
        let text = token.text.trim_matches('"');
        match &code {
            _ if token.kind == Kind::Literal && is_code(text) => code = Some(text.to_owned()),
            Some(code) if token.kind == Kind::Literal => found.push((code.clone(), text.to_owned())),
            Some(_) if token.text == ":" => {}
            Some(_) | None => code = None,
        }
    }
    found
}

fn is_code(text: &str) -> bool {
    text.contains('_') && text.chars().all(|character| character.is_ascii_lowercase() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::{CODES, DECLARED_IN, check, page};
    use crate::tidy::rust::Source;
    use crate::tidy::tree::Tree;

    /// Findings over pages of all codes but `without`, with `extra` pages, and a declaring file.
    fn findings(without: &str, extra: &[(&str, &str)], declaring: &str) -> Vec<String> {
        let codes = CODES.iter().filter(|code| **code != without);
        let pages: Vec<(String, String)> = codes.map(|code| (page(code), format!("# `{code}`\n"))).collect();
        let mut samples: Vec<(&str, &str)> = pages.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        samples.extend(extra);
        let source = Source::read(DECLARED_IN, declaring).unwrap();
        check(&Tree::of(&samples), &[source]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_code_without_a_page_is_found() {
        let missing = ["docs/errors/sandbox_busy.md: is missing: each error code has a page"];
        assert_eq!(findings("sandbox_busy", &[], "//! A.\n"), missing);
        let declared = ["docs/errors/new_code.md: is missing: each error code has a page"];
        assert_eq!(findings("", &[], "const A: &str = \"new_code\"; const B: &str = \"Not a code\";\n"), declared);
    }

    #[test]
    fn a_page_that_omits_a_status_is_found() {
        let declaring = "codes! { NotFound = \"not_found\": 404 410; }\n";
        let extra = [("docs/errors/not_found.md", "# `not_found`\n\n404\n")];
        assert_eq!(
            findings("not_found", &extra, declaring),
            ["docs/errors/not_found.md: does not name the HTTP status 410"]
        );
    }

    #[test]
    fn an_orphaned_page_is_found_and_the_index_is_none() {
        let extra = [("docs/errors/gone.md", "# `gone`\n"), ("docs/errors/README.md", "# Errors\n")];
        assert_eq!(findings("", &extra, "//! A.\n"), ["docs/errors/gone.md: is a page of no code: remove it"]);
    }

    #[test]
    fn a_page_of_another_heading_is_found() {
        let extra = [("docs/errors/not_found.md", "# Not found\n")];
        let expected = ["docs/errors/not_found.md:1: does not begin with the heading `not_found`"];
        assert_eq!(findings("not_found", &extra, "//! A.\n"), expected);
    }
}
