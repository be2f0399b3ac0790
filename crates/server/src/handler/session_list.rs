//! Lists of sessions (api 1.10, 2.2).

use nylorun_app::{Effects, SessionPlace, SessionQuery};
use nylorun_domain::grammar::is_sandbox_id;
use nylorun_domain::id::{AgentId, SessionId, UserId};
use nylorun_domain::session::Status;
use nylorun_domain::time::Millis;
use nylorun_wire::cursor::{self, ListBinding, ListKey};
use nylorun_wire::error::Rejection;
use nylorun_wire::session;

use super::refused;
use crate::reply::Reply;
use crate::request::{AN_ID, Call, bad_page_cursor};

/// What `sandboxId` must be.
const A_SANDBOX_ID: &str = "a sandbox's id: at most 200 letters, digits, '.', '_' and '-', in segments divided by '/'";
const FILTERS: [&str; 5] = ["agentId", "ownerUserId", "sandboxId", "status", "uncertain"];

/// A page with `limit`, else all sessions; then `agentId` and `uncertain` choose, and the other parameters of pages are
/// ignored (api 1.10).
pub(crate) async fn list(call: Call) -> Result<Reply, Rejection> {
    match call.limit()? {
        Some(limit) => page(&call, limit).await,
        None => {
            let (agent, effects) = (agent(&call)?, effects(&call)?);
            let sessions = call.server.app.session_list(call.caller()?, agent, effects).await.map_err(refused)?;
            Ok(Reply::ok(&session::list(&sessions)))
        }
    }
}

async fn page(call: &Call, limit: usize) -> Result<Reply, Rejection> {
    call.refuse_unknown_queries()?;
    let query = SessionQuery {
        agent: agent(call)?,
        status: call.read_query("status", &one_of_statuses(), Status::from_wire)?,
        environment: call.read_query("sandboxId", A_SANDBOX_ID, |id| is_sandbox_id(id).then(|| id.to_owned()))?,
        owner: call.read_query("ownerUserId", AN_ID, |id| UserId::parse(id).ok())?,
        effects: effects(call)?,
    };
    let filters: Vec<_> = FILTERS.iter().filter_map(|name| Some((*name, call.query.get(name)?))).collect();
    let binding = ListBinding { tenant: call.server.app.tenant_id(), route: call.route.path, filters: &filters };
    let place = call.given("cursor")?.map(|cursor| read_place(cursor, &binding)).transpose()?;
    let found = call.server.app.session_page(call.caller()?, query, place.as_ref(), limit).await.map_err(refused)?;
    let next = found.next.map(|SessionPlace { created_at, id }| {
        cursor::list(&binding, &ListKey { place: created_at.0, id: id.as_str().to_owned() })
    });
    Ok(Reply::ok(&session::page(&found.sessions, next.as_deref())))
}

fn agent(call: &Call) -> Result<Option<AgentId>, Rejection> {
    call.read_query("agentId", AN_ID, |id| AgentId::parse(id).ok())
}

fn effects(call: &Call) -> Result<Effects, Rejection> {
    let effects = call.read_query("uncertain", "true or false", |uncertain| match uncertain {
        "true" => Some(Effects::Uncertain),
        "false" => Some(Effects::Any),
        _ => None,
    });
    Ok(effects?.unwrap_or_default())
}

fn one_of_statuses() -> String {
    let words: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    format!("one of {}", words.join(", "))
}

fn read_place(cursor: &str, binding: &ListBinding<'_>) -> Result<SessionPlace, Rejection> {
    let key = cursor::read_list(cursor, binding).map_err(bad_page_cursor)?;
    let id = SessionId::parse(&key.id).map_err(|_| bad_page_cursor(cursor::CursorError::Malformed))?;
    Ok(SessionPlace { created_at: Millis(key.place), id })
}
