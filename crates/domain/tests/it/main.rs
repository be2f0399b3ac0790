//! Tests of the domain's documents: JSON, strict reading, manifests.
#![expect(clippy::expect_used, clippy::panic, reason = "a helper of a test fails by panicking, as the test does")]

mod budget;
mod check;
mod direct_call;
mod json;
mod json_properties;
mod manifest;
mod manifest_properties;
mod pin;
mod queue;
mod segments;
mod turn;
mod variant;

use nylorun_domain::check::Problems;
use nylorun_domain::json::Json;

/// A document of this project from one of serde's, whose `json!` is pleasant to write.
fn json(document: &serde_json::Value) -> Json {
    Json::parse(&document.to_string()).expect("serde prints JSON")
}

/// `code path: message` of each problem; the path's steps are divided by dots.
fn lines(problems: &Problems) -> Vec<String> {
    let line = |problem: &nylorun_domain::check::Problem| {
        let path: Vec<_> = problem.path.iter().map(ToString::to_string).collect();
        format!("{} {}: {}", problem.code.as_str(), path.join("."), problem.message)
    };
    problems.iter().map(line).collect()
}

/// Asserts that the problems are these, in order: each `code path: beginning of the message`.
#[track_caller]
fn assert_problems(problems: &Problems, expected: &[&str]) {
    let found = lines(problems);
    let agree = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.starts_with(b));
    assert!(agree, "found {found:#?}\nexpected {expected:#?}");
}
