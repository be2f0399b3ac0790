//! What no Rust file may hold, and the one thing that each must.

use super::Finding;
use super::rust::{Kind, Place, Source, Token};

/// Code that is not finished, or that is left over from looking for a fault.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// How SQL statements begin. Capitals are the house style for SQL, so that prose does not match.
const SQL: [&str; 11] = [
    "SELECT ",
    "INSERT INTO ",
    "INSERT OR ",
    "UPDATE ",
    "DELETE FROM ",
    "CREATE TABLE ",
    "CREATE INDEX ",
    "ALTER TABLE ",
    "DROP TABLE ",
    "PRAGMA ",
    "WITH RECURSIVE ",
];

/// Folders whose sources may hold SQL.
const SQL_IN: [&str; 3] = ["crates/store/", "bench/", "xtask/"];

/// Folders whose sources do no I/O and know neither time nor chance.
const PURE_IN: [&str; 2] = ["crates/domain/src/", "crates/engine/src/"];

/// Modules of the standard library that reach outside, and names that read a clock.
const IMPURE: [&str; 8] = ["fs", "net", "process", "thread", "env", "SystemTime", "Instant", "stdin"];

/// Findings over all sources.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let rules = [header, unfinished, attributes, sleeps, sql, purity];
    sources.iter().flat_map(|source| rules.iter().flat_map(move |rule| rule(source))).collect()
}

fn header(source: &Source) -> Vec<Finding> {
    if source.text.trim_start().starts_with("//!") {
        return Vec::new();
    }
    vec![Finding::at(&source.path, 1, "does not begin with //! that says what the file is for")]
}

fn unfinished(source: &Source) -> Vec<Finding> {
    let found = UNFINISHED.iter().flat_map(|name| source.places_of(&[name, "!"]));
    found.map(|token| at(source, token, format!("{}! is not for committed code", token.text))).collect()
}

fn at(source: &Source, token: &Token, text: impl Into<String>) -> Finding {
    Finding::at(&source.path, token.line, text)
}

fn attributes(source: &Source) -> Vec<Finding> {
    let ignored = source.places_of(&["#", "[", "ignore"]);
    let mut allowed = source.places_of(&["#", "[", "allow", "("]);
    allowed.extend(source.places_of(&["#", "!", "[", "allow", "("]));
    let ignored = ignored.into_iter().map(|token| (token, "an ignored test tests nothing"));
    let allowed = allowed.into_iter().map(|token| (token, "allow hides what it excuses: #[expect(…, reason = \"…\")]"));
    ignored.chain(allowed).map(|(token, text)| at(source, token, text)).collect()
}

fn sleeps(source: &Source) -> Vec<Finding> {
    let mut paused = false;
    let mut findings = Vec::new();
    for pair in source.tokens.windows(2) {
        let words = (pair[0].text.as_str(), pair[1].text.as_str());
        match words {
            // Each test says whether the runtime's clock is paused; there a sleep takes no time.
            ("test", "]") => paused = false,
            ("start_paused", _) => paused = true,
            ("sleep", "(") if pair[0].place == Place::Test && !paused => {
                findings.push(at(source, &pair[0], "a test waits for a condition, never for a time"));
            }
            _ => {}
        }
    }
    findings
}

fn sql(source: &Source) -> Vec<Finding> {
    if SQL_IN.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let literals = source.tokens.iter().filter(|token| token.kind == Kind::Literal);
    let found = literals.filter(|token| begins_as_sql(&token.text));
    found.map(|token| at(source, token, "SQL belongs in crates/store")).collect()
}

fn begins_as_sql(literal: &str) -> bool {
    let text = literal.trim_start_matches(['r', 'b', 'c', '#', '"']).trim_start_matches(['\\', '\n', ' ']);
    SQL.iter().any(|start| text.starts_with(start))
}

fn purity(source: &Source) -> Vec<Finding> {
    if !PURE_IN.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for name in IMPURE {
        for (words, why) in [
            (&["std", ":", ":", name], format!("std::{name} in a pure crate: the outside comes in as arguments")),
            (&[name, ":", ":", "now"], format!("{name}::now in a pure crate: time comes in as an argument")),
        ] {
            let found = source.places_of(words).into_iter().filter(|token| token.place == Place::Shipped);
            findings.extend(found.map(|token| at(source, token, why.clone())));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::rust::Source;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&[Source::read(path, text).unwrap()]).iter().map(ToString::to_string).collect()
    }

    fn in_app(text: &str) -> Vec<String> {
        findings("crates/app/src/a.rs", &format!("//! A.\n{text}"))
    }

    const CLEAN: [String; 0] = [];

    #[test]
    fn a_file_without_a_header_is_found() {
        let expected = ["crates/app/src/a.rs:1: does not begin with //! that says what the file is for"];
        assert_eq!(findings("crates/app/src/a.rs", "fn f() {}\n"), expected);
    }

    #[test]
    fn unfinished_code_is_found_inside_macros_too() {
        let expected = ["crates/app/src/a.rs:2: todo! is not for committed code"];
        assert_eq!(in_app("fn f() { vec![todo!()] }\n"), expected);
        assert_eq!(in_app("/// Not todo!().\nconst A: &str = \"dbg!(x)\";\n"), CLEAN);
    }

    #[test]
    fn ignored_tests_and_allow_are_found() {
        assert_eq!(in_app("#[ignore]\nfn f() {}\n"), ["crates/app/src/a.rs:2: an ignored test tests nothing"]);
        assert_eq!(in_app("#[ignore = \"slow\"]\nfn f() {}\n").len(), 1);
        let expected = ["crates/app/src/a.rs:2: allow hides what it excuses: #[expect(…, reason = \"…\")]"];
        assert_eq!(in_app("#[allow(dead_code)]\nfn f() {}\n"), expected);
        assert_eq!(in_app("#![allow(dead_code)]\nfn f() { allow(1) }\n"), expected);
    }

    #[test]
    fn sleeps_are_found_in_tests_only() {
        let text = "fn f() { sleep(1) }\n#[cfg(test)]\nmod tests {\n    fn g() { std::thread::sleep(d) }\n}\n";
        let expected = ["crates/app/src/a.rs:5: a test waits for a condition, never for a time"];
        assert_eq!(in_app(text), expected);
    }

    #[test]
    fn a_paused_clock_may_sleep() {
        let paused = "#[tokio::test(start_paused = true)]\nasync fn f() { sleep(d).await }\n";
        let text =
            format!("#[cfg(test)]\nmod tests {{\n{paused}#[tokio::test]\nasync fn g() {{ sleep(d).await }}\n}}\n");
        assert_eq!(in_app(&text), ["crates/app/src/a.rs:7: a test waits for a condition, never for a time"]);
    }

    #[test]
    fn sql_is_found_outside_the_store() {
        let text = "const A: &str = r#\"\n  SELECT 1\"#;\n";
        assert_eq!(in_app(text), ["crates/app/src/a.rs:2: SQL belongs in crates/store"]);
        assert_eq!(in_app("const A: &str = \"Select one\";\n"), CLEAN);
        assert_eq!(findings("crates/store/src/a.rs", &format!("//! A.\n{text}")), CLEAN);
    }

    #[test]
    fn a_clock_in_a_pure_crate_is_found() {
        let text = "//! A.\nfn f() { let t = std::time::Instant::now(); }\n";
        let expected = ["crates/engine/src/a.rs:2: Instant::now in a pure crate: time comes in as an argument"];
        assert_eq!(findings("crates/engine/src/a.rs", text), expected);
        assert_eq!(findings("crates/app/src/a.rs", text), CLEAN);
    }
}
