//! What holds for all documents given as manifests.

use nylorun_domain::json::{Json, Text, Value, parse};
use nylorun_domain::manifest::{AgentManifest, variant_of};
use proptest::prelude::*;
use serde_json::json;

use crate::json_properties::{Random, value};
use crate::manifest::{HASH, agent_with, delegate, http_tool};

proptest! {
    #[test]
    fn any_document_is_read_or_refused(value in value()) {
        let document = value.to_json();
        prop_assert!(AgentManifest::check_saved(&document).is_err());
        prop_assert!(AgentManifest::read_pinned(&document).is_err());
    }
}

fn sample() -> Json {
    let skill = json!({"name": "pdf", "description": "d", "files": {"SKILL.md": HASH, "a/b.txt": HASH}});
    let server = json!({"name": "m", "type": "sse", "url": "https://m", "tools": {"*": {"enabled": true}}});
    crate::json(&agent_with(json!({
        "instructions": ["a"], "skills": {"pdf": skill}, "mcpServers": {"m": server},
        "tools": [http_tool(json!({"approval": "always"})), delegate(json!({}), json!({}))],
    })))
}

#[test]
fn mutated_manifests_are_read_or_refused_with_reasons() {
    let sample = sample();
    let saved = AgentManifest::check_saved(&sample).expect("accepted");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut outcomes = [0, 0];
    for _ in 0..3_000 {
        let mut document = sample.value();
        for _ in 0..=random.below(2) {
            mutate(&mut document, &mut random);
        }
        let json = document.to_json();
        match AgentManifest::check_saved(&json) {
            Ok(manifest) => {
                outcomes[0] += 1;
                let canonical = Json::parse(&json.canonical()).expect("canonical is JSON");
                assert_eq!(AgentManifest::check_saved(&canonical).map(|again| again.hash), Ok(manifest.hash));
            }
            Err(problems) => {
                outcomes[1] += 1;
                assert!(!problems.is_empty());
                assert!(parse(&problems.to_json_text()).is_ok());
            }
        }
        // Neither breaks, whatever it says.
        let _pinned = AgentManifest::read_pinned(&json);
        let _variant = variant_of(&saved, &json);
    }
    assert!(outcomes.iter().all(|count| *count > 50), "mutations must give both outcomes: {outcomes:?}");
}

/// Changes one random value of the document, or takes away, doubles or renames what it holds.
fn mutate(value: &mut Value, random: &mut Random) {
    let deeper = random.below(4) > 0;
    match value {
        Value::Object(members) if deeper && !members.is_empty() => {
            let at = random.below(members.len());
            match random.below(8) {
                0 => {
                    members.remove(at);
                }
                1 => members[at].0 = Text::from(["name", "http", "agent", "sandbox", "x"][random.below(5)]),
                _ => mutate(&mut members[at].1, random),
            }
            // A name stands once.
            let mut seen = std::collections::HashSet::new();
            members.retain(|(name, _)| seen.insert(name.clone()));
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(6) {
                0 => {
                    items.remove(at);
                }
                1 => items.push(items[at].clone()),
                _ => mutate(&mut items[at], random),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            const LEAVES: [&str; 8] = ["null", "true", "5", "-1.5", "\"\"", "\"x\"", "[]", "{}"];
            *value = parse(LEAVES[random.below(LEAVES.len())]).expect("valid");
        }
    }
}
