//! The skill tools: what they give, how they fail, and that they may run again.

use std::collections::BTreeMap;
use std::sync::Arc;

use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::json::Value;
use nylorun_domain::manifest::{Skill, Tool, ToolExecutor};
use nylorun_domain::tool::{SkillTool, ToolOutcome};
use nylorun_ports::run::{EffectResult, RunEnd, TurnStart};

use crate::support::{Way, World, says, start, wants};

const SKILL: &[u8] = b"---\nname: pdf\ndescription: Reads PDFs\n---\n\nUse forms.md.\n";

/// A turn of an agent with the skill `pdf`.
fn with_skill(world: &World) -> TurnStart {
    let mut start = start(Vec::new());
    let mut manifest = (*start.manifest).clone();
    let missing = "sha256:".to_owned() + &"0".repeat(64);
    let files = [
        ("SKILL.md", world.blobs.add(SKILL)),
        ("forms.md", world.blobs.add("Fill é.".as_bytes())),
        ("logo.png", world.blobs.add(b"\x89PNG\xff")),
        ("large.txt", world.blobs.add(&[b'x'; 100_000])),
        ("gone.md", missing),
    ];
    let files: BTreeMap<_, _> = files.into_iter().map(|(path, hash)| (path.to_owned(), hash)).collect();
    let capability = &mut manifest.capabilities[0];
    capability.skills.push(Skill { name: "pdf".to_owned(), description: "Reads PDFs".to_owned(), files });
    for tool in SkillTool::ALL {
        let executor = ToolExecutor::Skill(*tool);
        capability.tools.push(Tool { name: tool.as_str().to_owned(), executor, ..capability.tools[0].clone() });
    }
    start.manifest = Arc::new(manifest);
    start
}

/// What these calls gave, each in a step of its own.
async fn results(calls: &[&str], prepare: impl FnOnce(&World)) -> Vec<ToolOutcome> {
    let script = calls.iter().map(|call| wants(&[call])).chain([says("Done")]);
    let mut world = World::new(Way::ByReference, script.collect());
    let start = with_skill(&world);
    prepare(&world);
    world.begin(start);
    assert_eq!(world.end().await, RunEnd::Settled);
    let commits = world.core.commits();
    let results = commits.iter().flat_map(|(reports, _)| reports).filter_map(|report| match &report.result {
        EffectResult::Value(EffectOutcome::Tool(outcome)) => Some(outcome.clone()),
        EffectResult::Value(_) | EffectResult::Lost { .. } => None,
    });
    results.collect()
}

fn failure(outcome: &ToolOutcome) -> (&str, &str) {
    match outcome {
        ToolOutcome::Failed { code, message } => (code, message),
        ToolOutcome::Completed { output } => panic!("{output}"),
    }
}

fn output(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Completed { output } => output.value(),
        ToolOutcome::Failed { code, message } => panic!("{code}: {message}"),
    }
}

#[tokio::test]
async fn a_skill_gives_its_instructions_and_its_files() {
    let calls = [
        r#"load_skill {"name":"pdf"}"#,
        r#"read_skill_resource {"name":"pdf","path":"forms.md"}"#,
        r#"read_skill_resource {"name":"pdf","path":"SKILL.md"}"#,
    ];
    let given = results(&calls, |_| {}).await;
    let loaded =
        r#"{"name":"pdf","instructions":"Use forms.md.\n","files":["forms.md","gone.md","large.txt","logo.png"]}"#;
    assert_eq!(output(&given[0]).to_json().as_str(), loaded);
    assert_eq!(output(&given[1]).as_str(), Some("Fill é."));
    assert_eq!(output(&given[2]).as_str().map(str::as_bytes), Some(SKILL));
}

#[tokio::test]
async fn failures_say_what_would_be_right() {
    let calls = [
        r#"load_skill {"name":"docx"}"#,
        r#"read_skill_resource {"name":"pdf","path":"../forms.md"}"#,
        r#"read_skill_resource {"name":"pdf","path":"logo.png"}"#,
        r#"read_skill_resource {"name":"pdf","path":"gone.md"}"#,
        r#"read_skill_resource {"path":7,"more":1}"#,
        "load_skill []",
    ];
    let given = results(&calls, |_| {}).await;
    let told: Vec<_> = given.iter().map(failure).collect();
    let codes: Vec<_> = told.iter().map(|(code, _)| *code).collect();
    assert_eq!(
        codes,
        [
            "skill.not_found",
            "skill.file_not_found",
            "skill.not_text",
            "skill.unavailable",
            "tool.invalid-arguments",
            "tool.invalid-arguments"
        ]
    );
    assert!(told[0].1.ends_with("The skills are: pdf"), "{}", told[0].1);
    assert!(told[1].1.contains("SKILL.md, forms.md"), "{}", told[1].1);
    assert!(told[4].1.contains("\nname: ") && told[4].1.contains("\npath: "), "{}", told[4].1);
}

#[tokio::test]
async fn storage_that_does_not_answer_is_told_to_the_model() {
    let given = results(&[r#"load_skill {"name":"pdf"}"#], |world| world.blobs.break_down()).await;
    assert_eq!(failure(&given[0]).0, "skill.unavailable");
}

#[tokio::test]
async fn a_large_file_is_shown_by_its_ends() {
    let given = results(&[r#"read_skill_resource {"name":"pdf","path":"large.txt"}"#], |_| {}).await;
    let shown = output(&given[0]);
    assert_eq!((shown.get("truncated"), shown.get("size")), (Some(&Value::from(true)), Some(&Value::from(100_002))));
    assert!(shown.to_json().as_str().len() < 8_192);
}
