//! What model calls used, and the tenant's budgets (api 1.10, 2.3, 3).

use nylorun_app::{CallPlace, LedgerPlace, UsageOf};
use nylorun_domain::budget::Period;
use nylorun_domain::id::{AgentId, TurnId};
use nylorun_domain::time::Millis;
use nylorun_wire::cursor::{self, CursorError, ListBinding, ListKey};
use nylorun_wire::error::Rejection;
use nylorun_wire::{budget, usage};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::{AN_ID, Call, bad_page_cursor, invalid_query};

/// Elements of a page of a session's calls, when nobody says how many (api 1.10).
const SESSION_CALLS: usize = 50;
/// Elements of a page of the export, when nobody says how many.
const EXPORTED_CALLS: usize = 200;

pub(crate) async fn of_session(call: Call) -> Result<Reply, Rejection> {
    call.refuse_unknown_queries()?;
    let (session, turn) = (call.session_id()?, turn(&call)?);
    let found = call.server.app.session_usage(call.caller()?, &session, turn.as_ref()).await.map_err(refused)?;
    Ok(Reply::ok(&usage::of_session(&session, turn.as_ref(), found.as_of, &found.totals)))
}

pub(crate) async fn session_calls(call: Call) -> Result<Reply, Rejection> {
    call.refuse_unknown_queries()?;
    let (session, turn) = (call.session_id()?, turn(&call)?);
    let limit = call.limit()?.unwrap_or(SESSION_CALLS);
    let mut filters = vec![("id", session.as_str())];
    filters.extend(turn.as_ref().map(|turn| ("turnId", turn.as_str())));
    let binding = ListBinding { tenant: call.server.app.tenant_id(), route: call.route.path, filters: &filters };
    let key = call.given("cursor")?.map(|cursor| read_key(cursor, &binding)).transpose()?;
    let place = key.map(|ListKey { place, id }| CallPlace { at: Millis(place), id });
    let app = &call.server.app;
    let found = app.session_calls(call.caller()?, &session, turn.as_ref(), place.as_ref(), limit);
    let found = found.await.map_err(refused)?;
    let next = found.next.map(|CallPlace { at, id }| cursor::list(&binding, &ListKey { place: at.0, id }));
    Ok(Reply::ok(&usage::session_page(&found.calls, next.as_deref(), found.as_of)))
}

pub(crate) async fn export(call: Call) -> Result<Reply, Rejection> {
    call.refuse_unknown_queries()?;
    let limit = call.limit()?.unwrap_or(EXPORTED_CALLS);
    let binding = ListBinding { tenant: call.server.app.tenant_id(), route: call.route.path, filters: &[] };
    let key = call.given("after")?.map(|after| read_key(after, &binding)).transpose()?;
    let place = key.map(|ListKey { place, id }| LedgerPlace { place, id }).unwrap_or_default();
    let found = call.server.app.export_calls(place, limit).await.map_err(refused)?;
    let LedgerPlace { place, id } = found.next;
    let next = cursor::list(&binding, &ListKey { place, id });
    Ok(Reply::ok(&usage::export_page(found.calls.iter(), &next, found.progress, found.as_of)))
}

pub(crate) async fn of_tenant(call: Call) -> Result<Reply, Rejection> {
    call.refuse_unknown_queries()?;
    let period = call.read_query("period", "one of day, month, total", |word| match word {
        "total" => Some(None),
        word => Period::from_wire(word).map(Some),
    });
    let (of, period) = (usage_of(&call)?, period?.flatten());
    let found = call.server.app.tenant_usage(of, period).await.map_err(refused)?;
    Ok(Reply::ok(&found.to_value()))
}

pub(crate) async fn budgets(call: Call) -> Result<Reply, Rejection> {
    let budgets = call.server.app.budget_list().await.map_err(refused)?;
    Ok(Reply::ok(&budget::list(&budgets)))
}

pub(crate) async fn put_budgets(call: Call) -> Result<Reply, Rejection> {
    let body = budget::read(call.body()?).map_err(unreadable)?;
    let budgets = call.server.app.budget_put_all(&body).await.map_err(refused)?;
    Ok(Reply::ok(&budget::list(&budgets)))
}

/// Where a page goes on: at the id of a call, or at no id, which is the beginning of the ledger.
fn read_key(cursor: &str, binding: &ListBinding<'_>) -> Result<ListKey, Rejection> {
    let key = cursor::read_list(cursor, binding).map_err(bad_page_cursor)?;
    if key.id.chars().any(char::is_control) {
        return Err(bad_page_cursor(CursorError::Malformed));
    }
    Ok(key)
}

fn turn(call: &Call) -> Result<Option<TurnId>, Rejection> {
    call.read_query("turnId", AN_ID, |id| TurnId::parse(id).ok())
}

/// Whose usage is asked for; `id` names the agent or the turn, and nothing else.
fn usage_of(call: &Call) -> Result<UsageOf, Rejection> {
    #[derive(Clone, Copy)]
    enum Scope {
        Tenant,
        Agent,
        Turn,
    }
    let scope = call.read_query("scope", "one of tenant, agent, turn", |word| match word {
        "tenant" => Some(Scope::Tenant),
        "agent" => Some(Scope::Agent),
        "turn" => Some(Scope::Turn),
        _ => None,
    })?;
    let scope = scope.unwrap_or(Scope::Tenant);
    let agent = call.read_query("id", AN_ID, |id| AgentId::parse(id).ok())?;
    match (scope, agent) {
        (Scope::Tenant, None) => Ok(UsageOf::Tenant),
        (Scope::Agent, Some(agent)) => Ok(UsageOf::Agent(agent)),
        (Scope::Turn, Some(id)) => Ok(UsageOf::Turn(TurnId::from_trusted(id.as_str()))),
        (Scope::Tenant, Some(_)) => Err(invalid_query("id", "id goes with scope agent or turn".to_owned())),
        (Scope::Agent, None) => Err(invalid_query("id", "scope agent needs the agent's id".to_owned())),
        (Scope::Turn, None) => Err(invalid_query("id", "scope turn needs the turn's id".to_owned())),
    }
}
