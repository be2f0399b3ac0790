//! The committed OpenAPI documents are those that the route table makes. `UPDATE_OPENAPI=1` writes them anew.

use std::path::Path;

use nylorun_domain::json::{Value, parse};
use nylorun_server::route::ROUTES;
use nylorun_server::{management_document, runtime_document};

use crate::world::World;

fn pretty(value: &Value, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent + 1);
    let (open, close, count) = match value {
        Value::Array(items) => ('[', ']', items.len()),
        Value::Object(members) => ('{', '}', members.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return value.write(out),
    };
    out.push(open);
    let items = value.as_array().unwrap_or_default().iter().map(|item| (None, item));
    let members = value.as_object().unwrap_or_default().iter().map(|(name, member)| (Some(name), member));
    for (at, (name, member)) in items.chain(members).enumerate() {
        out.push_str(if at > 0 { ",\n" } else { "\n" });
        out.push_str(&pad);
        if let Some(name) = name {
            name.write_json(out);
            out.push_str(": ");
        }
        pretty(member, indent + 1, out);
    }
    if count > 0 {
        out.push('\n');
        out.push_str(&"  ".repeat(indent));
    }
    out.push(close);
}

#[test]
fn the_committed_documents_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi");
    for (name, document) in [("runtime.json", runtime_document()), ("management.json", management_document())] {
        let mut text = String::new();
        pretty(&document, 0, &mut text);
        text.push('\n');
        let path = folder.join(name);
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &text).expect("written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "openapi/{name} is stale: run the test again with UPDATE_OPENAPI=1");
    }
}

#[test]
fn every_route_is_in_the_documents() {
    let documents = [runtime_document(), management_document()];
    for route in ROUTES {
        let documented = documents.iter().any(|document| {
            let operation = document.get("paths").and_then(|paths| paths.get(route.path));
            let operation = operation.and_then(|path| path.get(&route.method.as_str().to_ascii_lowercase()));
            operation.and_then(|operation| operation.get("operationId")).and_then(Value::as_str) == Some(route.name)
        });
        assert!(documented, "{}", route.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_public_and_not_cached() {
    let world = World::start().await;
    for (path, document) in [
        ("/openapi.json", runtime_document()),
        ("/openapi/runtime.json", runtime_document()),
        ("/openapi/management.json", management_document()),
    ] {
        let answer = world.ask("GET", path, &[], None).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-cache")), "{path}");
        assert_eq!(parse(&answer.body), Ok(document), "{path}");
    }
    assert_eq!(world.ask("POST", "/openapi.json", &[], None).await.status, 426);
    world.stop().await;
}
