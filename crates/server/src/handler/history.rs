//! A session's record: read in pages, or followed (api 1.11, 2.3).

use hyper::StatusCode;
use nylorun_app::StoredEvent;
use nylorun_domain::event::Visibility;
use nylorun_domain::id::{AgentId, SessionId};
use nylorun_domain::json::{Value, parse};
use nylorun_wire::cursor::{self, Binding};
use nylorun_wire::error::Rejection;
use nylorun_wire::history::{self, Paging};
use nylorun_wire::names;

use super::refused;
use crate::reply::Reply;
use crate::request::{AN_ID, Call, bad_page_cursor};
use crate::sse::{self, Deltas};

pub(crate) async fn follow(call: Call) -> Result<Reply, Rejection> {
    let session = call.session_id()?;
    let after = given_cursor(&call)?.map(|cursor| read_cursor(cursor, &session)).transpose()?;
    let deltas = call.read_query("deltas", "true or false", |deltas| match deltas {
        "true" => Some(Deltas::Wanted),
        "false" => Some(Deltas::Unwanted),
        _ => None,
    });
    let deltas = deltas?.unwrap_or(Deltas::Unwanted);
    let follower = call.server.app.follow(call.caller()?, &session, after).await.map_err(refused)?;
    let keepalive = call.server.config.limits.keepalive;
    Ok(Reply::Events(sse::events(session, follower, deltas, keepalive, call.server.stages.clone())))
}

pub(crate) async fn read(call: Call) -> Result<Reply, Rejection> {
    let session = call.session_id()?;
    let limit = call.limit()?;
    // A delegation's id, or an agent's path: both keep to what an id may be.
    let agent = call.read_query("agent", AN_ID, |agent| AgentId::parse(agent).ok())?;
    let agent = agent.as_ref().map(AgentId::as_str);
    let binding = Binding { tenant: call.server.app.tenant_id(), session: &session, agent };
    let after = given_cursor(&call)?.map(|cursor| match limit {
        Some(_) => cursor::read_history(cursor, &binding).map_err(bad_page_cursor),
        None => read_cursor(cursor, &session),
    });
    let after = after.transpose()?;
    let page = call.server.app.history(call.caller()?, &session, after, limit).await.map_err(refused)?;
    let served = page.events.iter().filter(|event| is_served(event, agent));
    let bodies: Vec<_> = served.map(|event| names::older_event(&event.kind, &event.body)).collect();
    let paging = match limit {
        Some(_) => Paging::Limited { tail: page.tail },
        None => Paging::Whole,
    };
    let json = history::page(&binding, bodies.iter().map(AsRef::as_ref), page.last.or(after), paging);
    Ok(Reply::Json(StatusCode::OK, json))
}

/// Where the caller stands; `?cursor=` wins.
fn given_cursor(call: &Call) -> Result<Option<&str>, Rejection> {
    Ok(call.given("cursor")?.or(call.last_event_id.as_deref()))
}

fn read_cursor(cursor: &str, session: &SessionId) -> Result<i64, Rejection> {
    cursor::read(cursor, session).map_err(|_| Rejection::bad_request("Invalid cursor"))
}

/// Whether a client is shown this event, and it belongs to the agent that was asked for.
fn is_served(event: &StoredEvent, agent: Option<&str>) -> bool {
    match event.visibility {
        Visibility::Internal => false,
        Visibility::Public => agent.is_none_or(|agent| is_work_of(event, agent)),
    }
}

fn is_work_of(event: &StoredEvent, agent: &str) -> bool {
    let body = parse(&event.body).unwrap_or(Value::Null);
    let worker = body.get("payload").and_then(|payload| payload.get("agent"));
    let is = |name| worker.and_then(|worker| worker.get(name)).and_then(Value::as_str) == Some(agent);
    is("delegationId") || is("path")
}
