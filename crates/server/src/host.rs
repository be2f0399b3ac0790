//! Documents of the host: health, readiness, OpenAPI (api 7).

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use nylorun_domain::json::Value;
use nylorun_wire::error::Rejection;
use nylorun_wire::protocol;

use crate::Server;
use crate::challenge::{RESOURCE_METADATA, resource_metadata};
use crate::openapi::{management_document, runtime_document};
use crate::reply::{Reply, bytes_of};
use crate::request::Head;
use crate::stage::Stage;

const SERVICE: &str = "nylorun-runtime";

static RUNTIME_DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| bytes_of(runtime_document().to_json()));
static MANAGEMENT_DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| bytes_of(management_document().to_json()));

/// Whether this path is the protected-resource document, which alone accepts an `Origin` outside `/v1`.
pub(crate) fn is_resource_metadata(path: &str) -> bool {
    path.strip_prefix(RESOURCE_METADATA).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The host document at this path, if there is one.
pub(crate) async fn document(server: &Server, head: &Head) -> Option<Result<Reply, Rejection>> {
    let path = head.path.as_str();
    match path {
        "/health" => return Some(Ok(health(server))),
        "/ready" => return Some(Ok(ready(server).await)),
        _ => {}
    }
    if head.method != Method::GET {
        return None;
    }
    match path {
        "/openapi.json" | "/openapi/runtime.json" => Some(Ok(Reply::Document(RUNTIME_DOCUMENT.clone()))),
        "/openapi/management.json" => Some(Ok(Reply::Document(MANAGEMENT_DOCUMENT.clone()))),
        path if is_resource_metadata(path) => {
            let document = resource_metadata(server, head);
            Some(document.map(Reply::Published).ok_or_else(Rejection::opaque))
        }
        _ => None,
    }
}

fn health(server: &Server) -> Reply {
    Reply::ok(&Value::object([
        ("status", Value::from("ok")),
        ("service", Value::from(SERVICE)),
        ("version", Value::from(server.config.version.as_str())),
        ("protocol", protocol::to_value()),
        ("coreVersion", Value::from(server.config.version.as_str())),
        ("hostId", Value::from(server.app.host_id())),
        ("pid", Value::from(i64::from(std::process::id()))),
    ]))
}

async fn ready(server: &Server) -> Reply {
    let listening = server.stages.now() == Stage::Running;
    let ready = server.app.ready().await;
    let checks = [("listener", listening), ("tenant", ready.tenant), ("database", ready.database)];
    let (status, word) = match checks.iter().all(|(_, well)| *well) {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
    };
    let checks = checks.into_iter().map(|(name, well)| (name, Value::from(well)));
    let body = Value::object([
        ("status", Value::from(word)),
        ("service", Value::from(SERVICE)),
        ("checks", Value::object(checks)),
    ]);
    Reply::Json(status, body.to_json())
}
