//! The rules of a manifest, one by one (sandbox-and-definitions d1).

use nylorun_domain::check::{Place, check};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::{
    AgentManifest, Approval, CapabilityKind, HttpMethod, HttpTarget, ManifestVersion, McpServer, McpToolSetting,
    McpTransport, Skill, ToolExecutor,
};
use serde_json::{Value, json};

use crate::assert_problems;

pub(crate) const HASH: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// An agent of version 6 with one capability `main`, to which `members` are added.
pub(crate) fn agent_with(members: Value) -> Value {
    let capability = with(json!({"id": "main", "type": "agent"}), members);
    json!({"manifestSchemaVersion": 6, "id": "a1", "capabilities": [capability]})
}

/// `object` with the members of `more`; a `null` takes a member away.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    let members = object.as_object_mut().expect("an object");
    for (name, value) in more.as_object().expect("an object") {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    object
}

pub(crate) fn http_tool(more: Value) -> Value {
    let target = json!({"url": "https://api.example.com/orders"});
    with(json!({"name": "orders", "inputSchema": {"type": "object"}, "http": target}), more)
}

fn skill(more: Value) -> Value {
    with(json!({"name": "pdf", "description": "Reads PDFs", "files": {"SKILL.md": HASH}}), more)
}

fn server(more: Value) -> Value {
    with(json!({"name": "docs", "type": "streamable-http", "url": "https://mcp.example.com"}), more)
}

/// An agent used as a tool, and the tool around it.
pub(crate) fn delegate(child: Value, tool: Value) -> Value {
    let child =
        with(json!({"manifestSchemaVersion": 5, "id": "helper", "description": "Helps", "capabilities": []}), child);
    let schema = json!({"type": "object", "properties": {"task": {"type": "string", "minLength": 1}},
        "required": ["task"], "additionalProperties": false});
    with(json!({"name": "helper", "description": "Helps", "inputSchema": schema, "agent": child}), tool)
}

#[track_caller]
fn refused(document: &Value, expected: &[&str]) {
    let problems = AgentManifest::check_saved(&crate::json(document)).expect_err("refused");
    assert_problems(&problems, expected);
}

fn accepted(document: &Value) -> AgentManifest {
    AgentManifest::check_saved(&crate::json(document)).unwrap_or_else(|problems| panic!("{document}\n{problems}"))
}

#[test]
fn everything_at_once_is_read() {
    let capability = json!({
        "id": "main", "type": "agent-plugin", "name": "Main", "description": "", "metadata": {"k": 1},
        "instructions": ["Be brief.", ""],
        "skills": {"pdf": skill(json!({}))},
        "tools": [http_tool(json!({
            "description": "Orders", "outputSchema": {}, "approval": "always",
            "http": {"url": "http://x/y?z", "method": "PATCH", "credential": "shop", "timeoutMs": 300_000},
        })), delegate(json!({}), json!({}))],
        "mcpServers": {"docs": server(json!({
            "headers": {"x-a": "b"}, "approval": "never", "deferred": true,
            "tools": {"*": {"enabled": false}, "find": {"enabled": true, "approval": "always", "deferred": false}},
        }))},
    });
    let document = json!({"manifestSchemaVersion": 6, "id": "a1", "name": "A", "description": "d", "metadata": {},
        "outputSchema": {"type": "object"}, "runtime": {}, "capabilities": [capability]});
    let manifest = accepted(&document);

    assert_eq!(manifest.version, ManifestVersion::V6);
    assert_eq!(
        (manifest.id.as_str(), manifest.name.as_deref(), manifest.description.as_deref()),
        ("a1", Some("A"), Some("d"))
    );
    assert_eq!(manifest.output_schema, Some(Json::from_trusted(r#"{"type":"object"}"#)));
    assert_eq!(manifest.document, crate::json(&document));
    assert_eq!(manifest.hash, manifest.document.canonical_sha256());
    let capability = &manifest.capabilities[0];
    assert_eq!(capability.kind, CapabilityKind::AgentPlugin);
    assert_eq!(capability.instructions, ["Be brief.", ""]);
    assert_eq!(
        capability.skills,
        [Skill {
            name: "pdf".to_owned(),
            description: "Reads PDFs".to_owned(),
            files: [("SKILL.md".to_owned(), HASH.to_owned())].into(),
        }]
    );
    assert_eq!(
        capability.tools[0].executor,
        ToolExecutor::Http(HttpTarget {
            url: "http://x/y?z".to_owned(),
            method: HttpMethod::Patch,
            credential: Some("shop".to_owned()),
            timeout_ms: 300_000,
            approval: Approval::Always,
        })
    );
    assert_eq!(manifest.delegates().map(|child| child.id.as_str().to_owned()).collect::<Vec<_>>(), ["helper"]);
    assert_eq!(
        manifest.tool("helper").map(|(owner, tool)| (owner.id.as_str(), tool.name.as_str())),
        Some(("main", "helper"))
    );
    assert_eq!(manifest.tool("nothing"), None);
    assert_eq!(manifest.files().into_iter().collect::<Vec<_>>(), [HASH]);
    assert_eq!(
        capability.mcp_servers,
        [McpServer {
            name: "docs".to_owned(),
            transport: McpTransport::StreamableHttp,
            url: "https://mcp.example.com".to_owned(),
            headers: vec![("x-a".to_owned(), "b".to_owned())],
            approval: Some(Approval::Never),
            deferred: Some(true),
            tools: vec![
                ("*".to_owned(), McpToolSetting { enabled: Some(false), approval: None, deferred: None }),
                (
                    "find".to_owned(),
                    McpToolSetting { enabled: Some(true), approval: Some(Approval::Always), deferred: Some(false) }
                ),
            ],
        }]
    );
}

#[test]
fn settings_of_mcp_tools_come_from_the_nearest() {
    let manifest = accepted(&agent_with(json!({"mcpServers": {"docs": server(json!({
        "approval": "always", "tools": {"*": {"deferred": true}, "find": {"enabled": false, "approval": "never"}},
    }))}})));
    let server = &manifest.capabilities[0].mcp_servers[0];
    let setting =
        |enabled, approval, deferred| McpToolSetting { enabled: Some(enabled), approval: Some(approval), deferred };
    assert_eq!(server.setting("find"), setting(false, Approval::Never, Some(true)));
    assert_eq!(server.setting("other"), setting(true, Approval::Always, Some(true)));
    let plain = accepted(&agent_with(json!({"mcpServers": {"docs": server_value()}})));
    assert_eq!(plain.capabilities[0].mcp_servers[0].setting("x"), setting(true, Approval::Never, None));
}

fn server_value() -> Value {
    server(json!({}))
}

#[test]
fn small_and_odd_manifests_are_accepted() {
    for document in [
        json!({"manifestSchemaVersion": 5, "id": "a", "capabilities": []}),
        json!({"manifestSchemaVersion": 6.0, "id": "any text / is an id", "capabilities": []}),
        agent_with(json!({"tools": [], "instructions": []})),
        agent_with(json!({"tools": [http_tool(json!({"name": "a".repeat(64)}))]})),
        agent_with(json!({"mcpServers": {"docs": server(json!({"type": "sse", "tools": {}}))}})),
        agent_with(json!({"skills": {"pdf": skill(json!({}))}, "tools": [
            {"name": "load_skill", "inputSchema": {}}, {"name": "read_skill_resource", "inputSchema": {}}]})),
    ] {
        accepted(&document);
    }
}

#[test]
fn the_agent_itself() {
    let base = || agent_with(json!({}));
    for (change, expected) in [
        (
            json!({"manifestSchemaVersion": 3}),
            "invalid_value manifestSchemaVersion: Manifest version 3 is no longer supported: rebuild",
        ),
        (
            json!({"manifestSchemaVersion": 4}),
            "invalid_value manifestSchemaVersion: Manifest version 4 is no longer supported: rebuild",
        ),
        (
            json!({"manifestSchemaVersion": 7}),
            "invalid_value manifestSchemaVersion: Unsupported manifest version: expected 5 or 6",
        ),
        (json!({"manifestSchemaVersion": "6"}), "invalid_value manifestSchemaVersion: Unsupported"),
        (json!({"manifestSchemaVersion": null}), "invalid_type manifestSchemaVersion: Invalid input: required"),
        (json!({"id": ""}), "too_small id: must not be empty"),
        (json!({"id": "a\u{0}"}), "invalid_format id: must not hold control characters"),
        (json!({"id": "a".repeat(513)}), "too_big id: must have at most 512 characters"),
        (json!({"name": ""}), "too_small name: Too small"),
        (json!({"description": 1}), "invalid_type description: Invalid input: expected string"),
        (json!({"metadata": []}), "invalid_type metadata: Invalid input: expected object, received array"),
        (json!({"outputSchema": true}), "invalid_type outputSchema: Invalid input: expected object"),
        (json!({"capabilities": null}), "invalid_type capabilities: Invalid input: required"),
        (json!({"capabilities": {}}), "invalid_type capabilities: Invalid input: expected array"),
        (json!({"capabilities": [1]}), "invalid_type capabilities.0: Invalid input: expected object"),
        (json!({"runtime": {"a": 1}}), "unrecognized_keys runtime: Unrecognized key: \"a\""),
        (json!({"runtime": []}), "invalid_type runtime: Invalid input: expected object"),
        (json!({"functions": {}}), "custom functions: `functions` is reserved"),
        (json!({"model": "x/y"}), "custom model: `model` is no part of a manifest any more"),
        (json!({"schemaVersion": 2}), "custom schemaVersion: `schemaVersion` is no part of a manifest any more"),
        (json!({"kind": "workflow"}), "custom kind: Flows (`kind: \"workflow\"`) are not available yet"),
        (json!({"kind": "agent"}), "unrecognized_keys : Unrecognized key: \"kind\""),
        (json!({"extra": 1}), "unrecognized_keys : Unrecognized key: \"extra\""),
    ] {
        refused(&with(base(), change), &[expected]);
    }
    refused(&json!([]), &["invalid_type : Invalid input: expected object, received array"]);
}

#[test]
fn all_problems_come_at_once_with_their_paths() {
    refused(
        &json!({"manifestSchemaVersion": 5, "name": "", "what": 1, "capabilities": [
            {"type": "agent", "tools": [{"name": "a b", "http": {"url": "x", "no": 1}}, 2]},
            {"id": "c", "type": "other", "mcpServers": {"m": {"name": "n", "type": "sse", "url": "", "tools": {}}}},
        ]}),
        &[
            "invalid_type id: Invalid input: required, received undefined",
            "too_small name: Too small: expected string to have >=1 characters",
            "invalid_type capabilities.0.id: Invalid input: required",
            "invalid_format capabilities.0.tools.0.name: Invalid string: expected 1 to 64 letters",
            "invalid_type capabilities.0.tools.0.inputSchema: Invalid input: required",
            "invalid_format capabilities.0.tools.0.http.url: Invalid URL: expected an absolute",
            "unrecognized_keys capabilities.0.tools.0.http: Unrecognized key: \"no\"",
            "invalid_type capabilities.0.tools.1: Invalid input: expected object, received number",
            "invalid_value capabilities.1.type: Invalid option: expected one of \"agent\"|\"agent-plugin\"",
            "custom capabilities.1.mcpServers.m.name: The name must equal its key",
            "too_small capabilities.1.mcpServers.m.url: Too small",
            "custom capabilities.1.mcpServers.m.tools: needs `manifestSchemaVersion` 6",
            "unrecognized_keys : Unrecognized key: \"what\"",
        ],
    );
}

#[test]
fn capabilities() {
    for (change, expected) in [
        (json!({"id": ""}), "too_small capabilities.0.id: Too small"),
        (json!({"type": "tool"}), "invalid_value capabilities.0.type: Invalid option"),
        (json!({"name": ""}), "too_small capabilities.0.name: Too small"),
        (json!({"metadata": 1}), "invalid_type capabilities.0.metadata: Invalid input: expected object"),
        (json!({"instructions": "text"}), "invalid_type capabilities.0.instructions: Invalid input: expected array"),
        (
            json!({"instructions": ["a", 1]}),
            "invalid_type capabilities.0.instructions.1: Invalid input: expected string",
        ),
        (json!({"tools": {}}), "invalid_type capabilities.0.tools: Invalid input: expected array"),
        (json!({"skills": {}}), "too_small capabilities.0.skills: Too small: expected object to have >=1 entries"),
        (
            json!({"mcpServers": {}}),
            "too_small capabilities.0.mcpServers: Too small: expected object to have >=1 entries",
        ),
        (json!({"sandbox": {}}), "custom capabilities.0.sandbox: A definition declares no sandbox"),
        (json!({"hooks": []}), "custom capabilities.0.hooks: `hooks` were removed"),
        (json!({"beforeModelCall": 1}), "custom capabilities.0.beforeModelCall: `beforeModelCall` was removed"),
        (json!({"afterModelCall": 1}), "custom capabilities.0.afterModelCall: `afterModelCall` was removed"),
        (json!({"model": 1}), "custom capabilities.0.model: `model` was removed"),
        (json!({"other": 1}), "unrecognized_keys capabilities.0: Unrecognized key: \"other\""),
    ] {
        refused(&agent_with(change), &[expected]);
    }
}

#[test]
fn names_are_unique_in_the_agent() {
    let part = |id: &str| {
        json!({"id": id, "type": "agent", "tools": [http_tool(json!({}))], "skills": {"pdf": skill(json!({}))},
            "mcpServers": {"docs": server(json!({}))}})
    };
    refused(
        &json!({"manifestSchemaVersion": 6, "id": "a", "capabilities": [part("one"), part("one")]}),
        &[
            "custom capabilities.1.id: Capability id \"one\" is used twice",
            "custom capabilities.1.skills.pdf: Skill name \"pdf\" is used twice",
            "custom capabilities.1.tools.0.name: Tool name \"orders\" is used twice",
            "custom capabilities.1.mcpServers.docs: MCP server name \"docs\" is used twice",
        ],
    );
    // A delegate has its own names.
    let child = json!({"capabilities": [part("one")]});
    let parent = with(part("one"), json!({"tools": [http_tool(json!({})), delegate(child, json!({}))]}));
    accepted(&json!({"manifestSchemaVersion": 6, "id": "a", "capabilities": [parent]}));
}

#[test]
fn tools() {
    let at = "capabilities.0.tools.0";
    for (change, expected) in [
        (
            json!({"name": ""}),
            format!("invalid_format {at}.name: Invalid string: expected 1 to 64 letters, digits, _ or -"),
        ),
        (json!({"name": "a".repeat(65)}), format!("invalid_format {at}.name: ")),
        (json!({"name": "über"}), format!("invalid_format {at}.name: ")),
        (json!({"name": null}), format!("invalid_type {at}.name: ")),
        (json!({"description": []}), format!("invalid_type {at}.description: ")),
        (json!({"inputSchema": null}), format!("invalid_type {at}.inputSchema: Invalid input: required")),
        (json!({"inputSchema": true}), format!("invalid_type {at}.inputSchema: Invalid input: expected object")),
        (json!({"outputSchema": []}), format!("invalid_type {at}.outputSchema: ")),
        (
            json!({"approval": "sometimes"}),
            format!("invalid_value {at}.approval: Invalid option: expected one of \"never\"|\"always\""),
        ),
        (json!({"fn": "x"}), format!("custom {at}.fn: `fn` is reserved")),
        (json!({"command": "x"}), format!("custom {at}.command: `command` is reserved")),
        (json!({"http": null}), format!("custom {at}: The tool \"orders\" needs code")),
        (json!({"http": null, "name": "bash"}), format!("custom {at}: The runtime adds the tool \"bash\" itself")),
        (json!({"http": null, "name": "load_skill"}), format!("custom {at}: The tool \"load_skill\" needs code")),
        (json!({"http": null, "fn": 1}), format!("custom {at}.fn: `fn` is reserved")),
        (json!({"extra": 1}), format!("unrecognized_keys {at}: Unrecognized key: \"extra\"")),
    ] {
        refused(&agent_with(json!({"tools": [http_tool(change)]})), &[&expected]);
    }
    let both = delegate(json!({}), json!({"http": {"url": "https://x"}}));
    refused(
        &agent_with(json!({"tools": [both]})),
        &[&format!("invalid_union {at}: At most one of agent or http may be given")],
    );
    let approved = delegate(json!({}), json!({"approval": "always"}));
    refused(
        &agent_with(json!({"tools": [approved]})),
        &[&format!("custom {at}.approval: `approval` is only for HTTP tools")],
    );
}

#[test]
fn http_targets() {
    let at = "capabilities.0.tools.0.http";
    for (change, expected) in [
        (json!({"url": null}), format!("invalid_type {at}.url: Invalid input: required")),
        (json!({"url": "/orders"}), format!("invalid_format {at}.url: Invalid URL: expected an absolute")),
        (json!({"url": ""}), format!("invalid_format {at}.url: Invalid URL: expected an absolute")),
        (json!({"url": "https://"}), format!("invalid_format {at}.url: Invalid URL: expected an absolute")),
        (json!({"url": "ftp://x/y"}), format!("invalid_format {at}.url: Invalid URL: expected http or https")),
        (json!({"url": "file:///etc/passwd"}), format!("invalid_format {at}.url: Invalid URL: expected http or https")),
        (json!({"url": "https://me@x"}), format!("invalid_format {at}.url: Invalid URL: must not hold user info")),
        (json!({"url": "https://:pw@x"}), format!("invalid_format {at}.url: Invalid URL: must not hold user info")),
        (json!({"url": "https://x#"}), format!("invalid_format {at}.url: Invalid URL: must not have a fragment")),
        (
            json!({"method": "GET"}),
            format!("invalid_value {at}.method: Invalid option: expected one of \"POST\"|\"PUT\"|\"PATCH\""),
        ),
        (json!({"credential": ""}), format!("too_small {at}.credential: ")),
        (json!({"timeoutMs": 0}), format!("too_small {at}.timeoutMs: ")),
        (json!({"timeoutMs": 300_001}), format!("too_big {at}.timeoutMs: ")),
        (json!({"timeoutMs": 1.5}), format!("invalid_type {at}.timeoutMs: Invalid input: expected int")),
        (json!({"headers": {}}), format!("unrecognized_keys {at}: Unrecognized key: \"headers\"")),
    ] {
        let target = with(json!({"url": "https://x"}), change);
        refused(&agent_with(json!({"tools": [http_tool(json!({"http": target}))]})), &[&expected]);
    }
}

#[test]
fn mcp_servers() {
    let at = "capabilities.0.mcpServers.docs";
    for (change, expected) in [
        (json!({"name": "other"}), format!("custom {at}.name: The name must equal its key in the map")),
        (
            json!({"type": "stdio", "command": "x", "url": null}),
            format!("custom {at}.type: `stdio` MCP servers cannot be used"),
        ),
        (
            json!({"type": "http"}),
            format!("invalid_value {at}.type: Invalid option: expected one of \"streamable-http\"|\"sse\""),
        ),
        (json!({"url": null}), format!("invalid_type {at}.url: Invalid input: required")),
        (json!({"url": ""}), format!("too_small {at}.url: ")),
        (json!({"headers": {"a": 1}}), format!("invalid_type {at}.headers.a: Invalid input: expected string")),
        (json!({"approval": "maybe"}), format!("invalid_value {at}.approval: ")),
        (json!({"deferred": "yes"}), format!("invalid_type {at}.deferred: ")),
        (json!({"tools": []}), format!("invalid_type {at}.tools: ")),
        (json!({"tools": {"find": {"enabled": 1}}}), format!("invalid_type {at}.tools.find.enabled: ")),
        (json!({"tools": {"*": {"approval": "x"}}}), format!("invalid_value {at}.tools.*.approval: ")),
        (json!({"tools": {"*": {"other": 1}}}), format!("unrecognized_keys {at}.tools.*: Unrecognized key: \"other\"")),
        (json!({"command": "npx"}), format!("unrecognized_keys {at}: Unrecognized key: \"command\"")),
    ] {
        refused(&agent_with(json!({"mcpServers": {"docs": server(change)}})), &[&expected]);
    }
    let spaced = server(json!({"name": "a b"}));
    refused(
        &agent_with(json!({"mcpServers": {"a b": spaced}})),
        &["invalid_format capabilities.0.mcpServers.a b.name: Invalid string: expected 1 to 64 letters"],
    );
    let old = with(
        agent_with(json!({"mcpServers": {"docs": server(json!({"deferred": true, "tools": {}}))}})),
        json!({"manifestSchemaVersion": 5}),
    );
    refused(
        &old,
        &[
            &format!("custom {at}.tools: needs `manifestSchemaVersion` 6"),
            &format!("custom {at}.deferred: needs `manifestSchemaVersion` 6"),
        ],
    );
}

#[test]
fn skills() {
    let at = "capabilities.0.skills.pdf";
    let files = |path: &str| json!({"files": {"SKILL.md": HASH, path: HASH}});
    for (change, expected) in [
        (json!({"name": "other"}), format!("custom {at}.name: The name must equal its key in the map")),
        (json!({"description": ""}), format!("too_small {at}.description: ")),
        (json!({"description": null}), format!("invalid_type {at}.description: Invalid input: required")),
        (json!({"files": null}), format!("invalid_type {at}.files: Invalid input: required")),
        (json!({"files": {}}), format!("custom {at}.files: The files of a skill must include SKILL.md")),
        (
            json!({"files": {"skill.md": HASH}}),
            format!("custom {at}.files: The files of a skill must include SKILL.md"),
        ),
        (
            json!({"files": {"SKILL.md": &HASH[7..]}}),
            format!("invalid_format {at}.files.SKILL.md: Invalid string: expected sha256:"),
        ),
        (json!({"files": {"SKILL.md": HASH.to_uppercase()}}), format!("invalid_format {at}.files.SKILL.md: ")),
        (json!({"extra": 1}), format!("unrecognized_keys {at}: Unrecognized key: \"extra\"")),
        (files("/abs"), format!("invalid_format {at}.files./abs: Invalid path")),
        (files("a//b"), format!("invalid_format {at}.files.a//b: Invalid path")),
        (files("a/"), format!("invalid_format {at}.files.a/: Invalid path")),
        (files(""), format!("invalid_format {at}.files.: Invalid path")),
        (files("./a"), format!("invalid_format {at}.files../a: Invalid path")),
        (files("a/../b"), format!("invalid_format {at}.files.a/../b: Invalid path")),
        (files("a\\b"), format!("invalid_format {at}.files.a\\b: Invalid path")),
        (files("a\nb"), format!("invalid_format {at}.files.a\nb: Invalid path")),
    ] {
        refused(&agent_with(json!({"skills": {"pdf": skill(change)}})), &[&expected]);
    }
    let path = "p".repeat(513);
    let problems =
        AgentManifest::check_saved(&crate::json(&agent_with(json!({"skills": {"pdf": skill(files(&path))}}))));
    assert_eq!(problems.expect_err("too long").len(), 1);
    accepted(&agent_with(json!({"skills": {"pdf": skill(files(&path[..512]))}})));
    for name in ["..", "a/b", "a\\b"] {
        let named = skill(json!({"name": name}));
        let expected =
            format!("invalid_format capabilities.0.skills.{name}.name: Invalid string: expected a name that a folder");
        refused(&agent_with(json!({"skills": {name: named}})), &[&expected]);
    }
}

#[test]
fn a_skill_has_at_most_500_files() {
    let files = |count: usize| {
        let mut files: serde_json::Map<_, _> = (1..count).map(|n| (format!("f{n}"), json!(HASH))).collect();
        files.insert("SKILL.md".to_owned(), json!(HASH));
        agent_with(json!({"skills": {"pdf": skill(json!({"files": files}))}}))
    };
    accepted(&files(500));
    refused(&files(501), &["too_big capabilities.0.skills.pdf.files: Too big: expected object to have <=500 entries"]);
}

#[test]
fn agents_as_tools() {
    let at = "capabilities.0.tools.0";
    let nested = json!({"capabilities": [{"id": "c", "type": "agent", "tools": [delegate(json!({}), json!({}))]}]});
    let sandboxed = json!({"capabilities": [{"id": "c", "type": "agent", "sandbox": {}}]});
    let code = json!({"capabilities": [{"id": "c", "type": "agent", "tools": [http_tool(json!({"http": null}))]}]});
    let schema = json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"],
        "additionalProperties": false});
    for (child, tool, expected) in [
        (
            json!({}),
            json!({"name": "other"}),
            vec![format!("custom {at}.name: The name of the tool must equal the id of its agent")],
        ),
        (
            json!({}),
            json!({"description": "Other"}),
            vec![format!("custom {at}.description: The description of the tool must equal")],
        ),
        (
            json!({}),
            json!({"description": null}),
            vec![format!("custom {at}.description: The tool must have the description")],
        ),
        (
            json!({"description": null}),
            json!({}),
            vec![format!("custom {at}.agent.description: An agent used as a tool needs")],
        ),
        (
            json!({"description": ""}),
            json!({"description": ""}),
            vec![format!("custom {at}.agent.description: An agent used as a tool")],
        ),
        (
            json!({}),
            json!({"inputSchema": schema}),
            vec![format!("custom {at}.inputSchema: The input schema of an agent used as a tool")],
        ),
        (
            json!({}),
            json!({"outputSchema": {}}),
            vec![format!("custom {at}.outputSchema: A tool that is an agent has no output schema")],
        ),
        (
            nested,
            json!({}),
            vec![format!("custom {at}.agent.capabilities.0.tools.0.agent: An agent used as a tool cannot have")],
        ),
        (
            sandboxed,
            json!({}),
            vec![format!("custom {at}.agent.capabilities.0.sandbox: A definition declares no sandbox")],
        ),
        (code, json!({}), vec![format!("custom {at}.agent.capabilities.0.tools.0: The tool \"orders\" needs code")]),
        (
            json!({"manifestSchemaVersion": 4}),
            json!({}),
            vec![format!("invalid_value {at}.agent.manifestSchemaVersion: Manifest version 4")],
        ),
        (json!({"kind": "workflow"}), json!({}), vec![format!("custom {at}.agent.kind: Flows")]),
        (
            json!({}),
            json!({"agent": 1}),
            vec![
                format!("custom {at}.agent.description: An agent used as a tool needs"),
                format!("invalid_type {at}.agent: Invalid input: expected object"),
            ],
        ),
    ] {
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        refused(&agent_with(json!({"tools": [delegate(child, tool)]})), &expected);
    }
    // The schema is compared by meaning, not by the order of its members.
    let reordered = json!({"additionalProperties": false, "required": ["task"], "type": "object",
        "properties": {"task": {"minLength": 1, "type": "string"}}});
    accepted(&agent_with(json!({"tools": [delegate(json!({}), json!({"inputSchema": reordered}))]})));
}

#[test]
fn a_manifest_in_a_body_has_paths_from_the_body_on() {
    let body = crate::json(&json!({"manifest": {"manifestSchemaVersion": 6, "id": "", "capabilities": []}}));
    let read = |place: Place<'_>| {
        let object = place.object()?;
        let manifest = object.required("manifest", AgentManifest::saved);
        object.finish();
        manifest
    };
    assert_problems(&check(&body.value(), read).expect_err("refused"), &["too_small manifest.id: must not be empty"]);
}

#[test]
fn content_keeps_what_utf8_cannot_hold() {
    let text = concat!(
        r#"{"manifestSchemaVersion":6,"id":"a","capabilities":["#,
        r#"{"id":"c","type":"agent","instructions":["x\ud800\u0000"]}]}"#
    );
    let manifest = AgentManifest::check_saved(&Json::parse(text).expect("valid")).expect("accepted");
    assert_eq!(manifest.document.as_str(), text);
    assert_eq!(manifest.capabilities[0].instructions, ["x\u{fffd}\0"]);
}
