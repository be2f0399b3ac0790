//! Agents (api 2.1).

use nylorun_wire::agent::{self, SaveAgent};
use nylorun_wire::error::Rejection;

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn list(call: Call) -> Result<Reply, Rejection> {
    let agents = call.server.app.agent_list(call.caller()?).await.map_err(refused)?;
    Ok(Reply::ok(&match call.caller()?.person() {
        Some(_) => agent::cards(&agents),
        None => agent::list(&agents),
    }))
}

pub(crate) async fn save(call: Call) -> Result<Reply, Rejection> {
    let body = SaveAgent::read(call.body()?).map_err(unreadable)?;
    let saved = call.server.app.agent_save(call.caller()?, call.agent_id()?, body).await.map_err(refused)?;
    Ok(Reply::ok(&saved.to_value()))
}
