//! Sessions and their commands (api 2.2, 2.4).

use nylorun_app::{Effects, SessionQuery};
use nylorun_domain::id::AgentId;
use nylorun_wire::command::Command;
use nylorun_wire::error::Rejection;
use nylorun_wire::session::{self, OpenSession};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::{Call, bad_query};

pub(crate) async fn list(call: Call) -> Result<Reply, Rejection> {
    // Pages come with a feature that is not advertised; without `limit`, their other parameters are ignored (api 1.10).
    if call.query.get("limit").is_some() {
        return Err(bad_query("limit", "left out: this server does not page its sessions yet"));
    }
    let agent = call.query.get("agentId").map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| bad_query("agentId", &format!("an agent's id: it {error}")))?;
    let effects = match call.query.get("uncertain") {
        None | Some("false") => Effects::Any,
        Some("true") => Effects::Uncertain,
        Some(_) => return Err(bad_query("uncertain", "true or false")),
    };
    let query = SessionQuery { agent, effects };
    let sessions = call.server.app.session_list(&call.caller, &query).await.map_err(refused)?;
    Ok(Reply::ok(&session::list(&sessions)))
}

pub(crate) async fn open(call: Call) -> Result<Reply, Rejection> {
    let body = OpenSession::read(call.body()?).map_err(unreadable)?;
    let view = call.server.app.session_open(&call.caller, call.session_id()?, body).await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn view(call: Call) -> Result<Reply, Rejection> {
    let view = call.server.app.session_view(&call.caller, &call.session_id()?).await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn manifest(call: Call) -> Result<Reply, Rejection> {
    let pinned = call.server.app.session_manifest(&call.caller, &call.session_id()?).await.map_err(refused)?;
    Ok(Reply::ok(&pinned.to_value()))
}

pub(crate) async fn command(call: Call) -> Result<Reply, Rejection> {
    let command = Command::read(call.body()?)?;
    let accepted = call.server.app.command(&call.caller, &call.session_id()?, command).await.map_err(refused)?;
    Ok(Reply::ok(&accepted.to_value()))
}
