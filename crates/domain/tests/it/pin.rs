//! What a session's copy gets from the runtime.

use nylorun_domain::manifest::{
    AgentManifest, SANDBOX_CAPABILITY, ToolExecutor, pin_skills, pin_workspace, workspace_tool_schema,
};
use nylorun_domain::tool::{SkillTool, WorkspaceTool};
use nylorun_domain::workspace::WorkspaceSpec;
use serde_json::{Value, json};

use crate::manifest::{agent_with, delegate, http_tool, with};
use crate::{assert_problems, json};

fn spec() -> WorkspaceSpec {
    WorkspaceSpec {
        image: None,
        cpus: 2,
        memory_mib: 1024,
        network_allow: vec!["*.example.org".to_owned(), "api.example.com".to_owned()],
        idle_ms: 900_000,
    }
}

fn saved(document: &Value) -> AgentManifest {
    AgentManifest::check_saved(&json(document)).expect("accepted")
}

#[test]
fn a_workspace_brings_a_capability_with_six_tools() {
    let saved = saved(&agent_with(json!({"tools": [http_tool(json!({}))]})));
    let pinned = pin_workspace(&saved, &spec()).expect("pinned");

    assert_eq!(pinned.capabilities.len(), 2);
    assert_eq!(pinned.capabilities[0], saved.capabilities[0]);
    let added = &pinned.capabilities[1];
    assert_eq!((added.id.as_str(), &added.sandbox), (SANDBOX_CAPABILITY, &Some(spec())));
    assert!(!added.instructions.is_empty());
    let executors: Vec<_> = added.tools.iter().map(|tool| tool.executor.clone()).collect();
    assert_eq!(executors, WorkspaceTool::ALL.iter().map(|tool| ToolExecutor::Workspace(*tool)).collect::<Vec<_>>());
    assert!(added.tools.iter().all(|tool| tool.description.is_some()));
    assert_eq!(pinned.sandbox(), Some(&spec()));
    assert_eq!(pinned.tool("bash").map(|(owner, _)| owner.id.as_str()), Some(SANDBOX_CAPABILITY));

    // The definition has not changed, and the copy reads back as it is.
    assert_ne!(pinned.hash, saved.hash);
    assert_eq!(AgentManifest::read_pinned(&pinned.document), Ok(pinned.clone()));
    assert!(AgentManifest::check_saved(&pinned.document).is_err());
    // Pinning what has a workspace already adds nothing.
    assert_eq!(pin_workspace(&pinned, &spec()).expect("pinned").document, pinned.document);
}

#[test]
fn the_spec_stands_in_the_document_as_the_wire_has_it() {
    let full = WorkspaceSpec { image: Some("python:3.13-slim".to_owned()), ..spec() };
    let bare = WorkspaceSpec { network_allow: Vec::new(), idle_ms: 1_500, ..spec() };
    for (spec, expected) in [
        (
            full,
            json!({"image": "python:3.13-slim",
                "network": {"preset": "none", "allow": ["*.example.org", "api.example.com"]},
            "resources": {"cpus": 2, "memory": "1024MiB"}, "idle": "15m"}),
        ),
        (bare, json!({"network": {"preset": "none"}, "resources": {"cpus": 2, "memory": "1024MiB"}, "idle": "1500ms"})),
    ] {
        let pinned = pin_workspace(&saved(&agent_with(json!({}))), &spec).expect("pinned");
        let document: Value = serde_json::from_str(pinned.document.as_str()).expect("JSON");
        assert_eq!(document["capabilities"][1]["sandbox"], expected);
        assert_eq!(AgentManifest::read_pinned(&pinned.document).expect("reads").sandbox(), Some(&spec));
    }
}

#[test]
fn agents_used_as_tools_get_the_same_workspace() {
    let pinned = pin_workspace(&saved(&agent_with(json!({"tools": [delegate(json!({}), json!({}))]}))), &spec());
    let pinned = pinned.expect("pinned");
    let child = pinned.delegates().next().expect("a delegate");
    assert_eq!(child.sandbox(), Some(&spec()));
    assert_eq!(child.capabilities.last(), pinned.capabilities.last());
}

#[test]
fn clashing_names_say_how_to_go_on() {
    let edit = http_tool(json!({"name": "edit"}));
    let child = json!({"capabilities": [{"id": SANDBOX_CAPABILITY, "type": "agent", "tools": [edit]}]});
    let tools = [http_tool(json!({"name": "bash"})), http_tool(json!({})), delegate(child, json!({}))];
    let problems = pin_workspace(&saved(&agent_with(json!({"tools": tools}))), &spec()).expect_err("clash");
    let advice = "rename it, or open the session with sandbox:false";
    let child = "capabilities.0.tools.2.agent.capabilities.0";
    let clash = |tool: &str| format!("The tool \"{tool}\" has the name of a workspace tool: {advice}");
    assert_problems(
        &problems,
        &[
            &format!("custom capabilities.0.tools.0.name: {}", clash("bash")),
            &format!("custom {child}.id: The runtime adds a capability \"nylorun.sandbox\" itself: {advice}"),
            &format!("custom {child}.tools.0.name: {}", clash("edit")),
        ],
    );
}

#[test]
fn a_copy_that_breaks_the_rules_of_sandboxes_is_refused() {
    let tools: Vec<_> =
        WorkspaceTool::ALL.iter().map(|tool| json!({"name": tool.as_str(), "inputSchema": {}})).collect();
    let sandbox = json!({"network": {"preset": "none"}, "resources": {"cpus": 1, "memory": "512MiB"}, "idle": "1m"});
    let part = |sandbox: &Value| json!({"id": "s", "type": "agent", "tools": tools, "sandbox": sandbox});
    let agent = |parts: Vec<Value>| json!({"manifestSchemaVersion": 6, "id": "a", "capabilities": parts});
    assert!(AgentManifest::read_pinned(&json(&agent(vec![part(&sandbox)]))).is_ok());
    let other = with(sandbox.clone(), json!({"idle": "2m"}));
    let child = json!({"capabilities": [part(&other)]});
    let with_delegate = [tools.clone(), vec![delegate(child, json!({}))]].concat();
    let wrong = json!({"network": {"preset": "open", "x": 1}, "resources": {"cpus": 65, "memory": "0B"}, "idle": "0s"});
    for (document, expected) in [
        (
            agent(vec![with(part(&sandbox), json!({"tools": tools[1..]}))]),
            vec!["custom capabilities.0: A capability with a sandbox must declare all six workspace tools"],
        ),
        (
            agent(vec![part(&sandbox), json!({"id": "t", "type": "agent", "sandbox": sandbox})]),
            vec![
                "custom capabilities.1.sandbox: At most one capability may have a sandbox",
                "custom capabilities.1: A capability with a sandbox must declare all six",
            ],
        ),
        (
            agent(vec![part(&wrong)]),
            vec![
                "invalid_value capabilities.0.sandbox.network.preset: Invalid input: expected \"none\"",
                "unrecognized_keys capabilities.0.sandbox.network: Unrecognized key: \"x\"",
                "too_big capabilities.0.sandbox.resources.cpus: ",
                "invalid_format capabilities.0.sandbox.resources.memory: Invalid size",
                "invalid_format capabilities.0.sandbox.idle: Invalid duration",
            ],
        ),
        (
            agent(vec![with(part(&sandbox), json!({"tools": with_delegate}))]),
            vec!["custom capabilities.0.tools.6.agent: All sandboxes that an agent and its agents declare must"],
        ),
    ] {
        assert_problems(&AgentManifest::read_pinned(&json(&document)).expect_err("refused"), &expected);
    }
}

#[test]
fn the_schemas_of_the_tools_are_those_of_the_specification() {
    let schema = |tool| serde_json::from_str::<Value>(workspace_tool_schema(tool).to_json().as_str()).expect("JSON");
    let summary = |tool: WorkspaceTool| {
        let schema = schema(tool);
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        let properties = schema["properties"].as_object().expect("properties");
        let rule = |(name, property): (&String, &Value)| {
            let limits = ["minLength", "minimum", "maximum", "default"].map(|limit| property[limit].to_string());
            format!("{name}:{}:{}", property["type"].as_str().expect("a type"), limits.join(":"))
        };
        (properties.iter().map(rule).collect::<Vec<_>>().join(" "), schema["required"].to_string())
    };
    for (tool, properties, required) in [
        (WorkspaceTool::Bash, "command:string:1:null:null:null timeout:integer:null:1:600:120", r#"["command"]"#),
        (
            WorkspaceTool::Read,
            "path:string:1:null:null:null offset:integer:null:1:null:1 limit:integer:null:1:5000:2000",
            r#"["path"]"#,
        ),
        (
            WorkspaceTool::Write,
            "path:string:1:null:null:null content:string:null:null:null:null",
            r#"["path","content"]"#,
        ),
        (
            WorkspaceTool::Edit,
            "path:string:1:null:null:null old_string:string:1:null:null:null new_string:string:null:null:null:null \
             replace_all:boolean:null:null:null:false",
            r#"["path","old_string","new_string"]"#,
        ),
        (
            WorkspaceTool::Grep,
            "pattern:string:1:null:null:null path:string:1:null:null:null glob:string:1:null:null:null \
             ignore_case:boolean:null:null:null:false max_results:integer:null:1:1000:200",
            r#"["pattern"]"#,
        ),
        (WorkspaceTool::Glob, "pattern:string:1:null:null:null path:string:1:null:null:null", r#"["pattern"]"#),
    ] {
        assert_eq!(summary(tool), (properties.to_owned(), required.to_owned()));
    }
}

#[test]
fn an_agent_with_skills_gets_the_tools_that_it_does_not_declare() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let skill = |name: &str, path: &str| {
        let files = json!({"SKILL.md": hash, path: hash});
        json!({"name": name, "description": format!("Reads {name}"), "files": files})
    };
    let names = |manifest: &AgentManifest| manifest.tools().map(|(_, tool)| tool.name.clone()).collect::<Vec<_>>();
    let pinned = |document: Value| pin_skills(saved(&document)).expect("pinned");

    let both = agent_with(json!({"skills": {"b": skill("b", "more.md"), "a": skill("a", "SKILL.md")}}));
    let given = pinned(both.clone());
    assert_eq!(names(&given), ["load_skill", "read_skill_resource"]);
    let (_, load) = given.tool("load_skill").expect("added");
    assert_eq!(load.executor, ToolExecutor::Skill(SkillTool::Load));
    let schema: Value = serde_json::from_str(load.input_schema.as_str()).expect("JSON");
    assert_eq!(schema["properties"]["name"]["enum"], json!(["a", "b"]));
    assert!(load.description.as_ref().is_some_and(|text| text.contains("\n- a: Reads a")), "{load:?}");
    assert_ne!(given.hash, saved(&both).hash);
    // What is there already is not added again, and the copy reads back.
    assert_eq!(pin_skills(given.clone()), Ok(given.clone()));
    assert_eq!(AgentManifest::read_pinned(&given.document), Ok(given));

    // One file a skill needs no second tool; a name that is taken stays with its tool.
    let one = json!({"skills": {"a": skill("a", "SKILL.md")}, "tools": [http_tool(json!({}))]});
    assert_eq!(names(&pinned(agent_with(one.clone())))[1..], ["load_skill"]);
    let taken = with(one, json!({"tools": [http_tool(json!({"name": "load_skill"}))]}));
    assert_eq!(names(&pinned(agent_with(taken))), ["load_skill"]);
    // Nothing changes without skills.
    let plain = saved(&agent_with(json!({})));
    assert_eq!(pin_skills(plain.clone()), Ok(plain));
}

#[test]
fn agents_used_as_tools_get_their_own_skill_tools() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let skills = json!({"a": {"name": "a", "description": "d", "files": {"SKILL.md": hash}}});
    let capability = json!({"id": "c", "type": "agent", "skills": skills});
    let child = delegate(json!({"capabilities": [capability]}), json!({}));
    let given = pin_skills(saved(&agent_with(json!({"tools": [child]})))).expect("pinned");
    assert!(given.tool("load_skill").is_none());
    assert!(given.delegates().next().expect("a delegate").tool("load_skill").is_some());
}
