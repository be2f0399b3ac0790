//! A turn's manifest may only narrow the session's.

use nylorun_domain::manifest::{AgentManifest, variant_of};
use serde_json::{Value, json};

use crate::manifest::{HASH, delegate, http_tool, with};
use crate::{assert_problems, json};

fn tools() -> Vec<Value> {
    vec![http_tool(json!({"description": "Orders"})), delegate(json!({}), json!({}))]
}

fn skills() -> Value {
    let skill = |name: &str| json!({"name": name, "description": "d", "files": {"SKILL.md": HASH}});
    json!({"pdf": skill("pdf"), "csv": skill("csv")})
}

fn main_part() -> Value {
    json!({"id": "main", "type": "agent", "name": "Main", "instructions": ["a"], "tools": tools(), "skills": skills()})
}

fn docs_part() -> Value {
    json!({"id": "docs", "type": "agent-plugin", "mcpServers": {"m": {"name": "m", "type": "sse", "url": "https://m"}}})
}

fn agent(parts: &[Value]) -> Value {
    json!({"manifestSchemaVersion": 6, "id": "a1", "name": "A", "runtime": {}, "capabilities": parts})
}

fn narrow(variant: &Value) -> Result<AgentManifest, nylorun_domain::check::Problems> {
    let saved = AgentManifest::check_saved(&json(&agent(&[main_part(), docs_part()]))).expect("accepted");
    variant_of(&saved, &json(variant))
}

#[test]
fn what_narrows_is_accepted() {
    let one_skill = json!({"csv": skills()["csv"]});
    let reordered = json!({"http": {"url": "https://api.example.com/orders"}, "inputSchema": {"type": "object"},
        "description": "Orders", "name": "orders"});
    for variant in [
        agent(&[main_part(), docs_part()]),
        agent(&[docs_part(), main_part()]),
        agent(&[docs_part()]),
        agent(&[with(main_part(), json!({"tools": [reordered], "skills": one_skill})), docs_part()]),
        agent(&[with(main_part(), json!({"tools": null, "skills": null})), docs_part()]),
        agent(&[
            with(
                main_part(),
                json!({"name": "N", "description": "d", "metadata": {"a": 1}, "instructions": ["b", "c"]}),
            ),
            docs_part(),
        ]),
        with(
            agent(&[docs_part()]),
            json!({"name": "B", "description": "d", "metadata": {}, "runtime": null,
            "outputSchema": {"type": "object"}}),
        ),
    ] {
        let manifest = narrow(&variant).unwrap_or_else(|problems| panic!("{variant}\n{problems}"));
        assert_eq!(manifest.document, json(&variant));
    }
}

#[test]
fn what_widens_or_changes_is_refused() {
    let main = "capabilities.0";
    let changed_tool = http_tool(json!({"description": "Orders", "http": {"url": "https://other.example.com"}}));
    let changed_child =
        delegate(json!({"capabilities": [{"id": "c", "type": "agent", "instructions": ["x"]}]}), json!({}));
    let more_servers =
        json!({"m": docs_part()["mcpServers"]["m"], "n": {"name": "n", "type": "sse", "url": "https://n"}});
    let new_skill = json!({"new": {"name": "new", "description": "d", "files": {"SKILL.md": HASH}}});
    let changed_skill = json!({"pdf": {"name": "pdf", "description": "other", "files": {"SKILL.md": HASH}}});
    for (variant, expected) in [
        (
            with(agent(&[main_part(), docs_part()]), json!({"id": "a2"})),
            "custom id: A turn's manifest must have the id".to_owned(),
        ),
        (
            with(agent(&[main_part(), docs_part()]), json!({"manifestSchemaVersion": 5})),
            "custom manifestSchemaVersion: A turn's manifest must have the version".to_owned(),
        ),
        (
            agent(&[main_part(), docs_part(), json!({"id": "new", "type": "agent"})]),
            "custom capabilities.2.id: A turn's manifest must not add a capability".to_owned(),
        ),
        (
            agent(&[with(main_part(), json!({"type": "agent-plugin"})), docs_part()]),
            format!("custom {main}.type: A turn's manifest must not change `type`"),
        ),
        (
            agent(&[with(main_part(), json!({"tools": [http_tool(json!({"name": "new"}))]})), docs_part()]),
            format!("custom {main}.tools.0: A turn's manifest must not add a tool"),
        ),
        (
            agent(&[with(main_part(), json!({"tools": [changed_tool]})), docs_part()]),
            format!("custom {main}.tools.0: A turn's manifest must not change a tool"),
        ),
        (
            agent(&[with(main_part(), json!({"tools": [changed_child]})), docs_part()]),
            format!("custom {main}.tools.0: A turn's manifest must not change a tool"),
        ),
        (
            agent(&[with(main_part(), json!({"tools": null})), with(docs_part(), json!({"tools": [tools()[0]]}))]),
            "custom capabilities.1.tools.0: A turn's manifest must not add a tool".to_owned(),
        ),
        (
            agent(&[with(main_part(), json!({"skills": new_skill})), docs_part()]),
            format!("custom {main}.skills.new: A turn's manifest must not add a skill"),
        ),
        (
            agent(&[with(main_part(), json!({"skills": changed_skill})), docs_part()]),
            format!("custom {main}.skills.pdf: A turn's manifest must not change a skill"),
        ),
        (
            agent(&[main_part(), with(docs_part(), json!({"mcpServers": more_servers}))]),
            "custom capabilities.1.mcpServers: A turn's manifest must not change `mcpServers`".to_owned(),
        ),
        (
            agent(&[main_part(), with(docs_part(), json!({"mcpServers": null}))]),
            "custom capabilities.1.mcpServers: A turn's manifest must not change `mcpServers`".to_owned(),
        ),
        (
            agent(&[
                with(main_part(), json!({"mcpServers": {"n": {"name": "n", "type": "sse", "url": "https://n"}}})),
                docs_part(),
            ]),
            format!("custom {main}.mcpServers: A turn's manifest must not change `mcpServers`"),
        ),
        (agent(&[main_part()]), "custom capabilities: A turn's manifest must keep the capability \"docs\"".to_owned()),
    ] {
        assert_problems(&narrow(&variant).expect_err("refused"), &[&expected]);
    }
    // A variant follows the rules of a definition too.
    let sandboxed = agent(&[with(main_part(), json!({"sandbox": {}})), docs_part()]);
    assert_problems(
        &narrow(&sandboxed).expect_err("refused"),
        &[
            "custom capabilities.0.sandbox: A definition declares no sandbox",
            "custom capabilities.0.sandbox: A turn's manifest must not change `sandbox`",
        ],
    );
}
