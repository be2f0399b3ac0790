//! Sessions and their commands (api 2.2, 2.4).

use nylorun_wire::command::Command;
use nylorun_wire::error::Rejection;
use nylorun_wire::session::{OpenSession, removed};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn open(call: Call) -> Result<Reply, Rejection> {
    let body = OpenSession::read(call.body()?).map_err(unreadable)?;
    let view = call.server.app.session_open(call.caller()?, call.session_id()?, body).await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn view(call: Call) -> Result<Reply, Rejection> {
    let view = call.server.app.session_view(call.caller()?, &call.session_id()?).await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn manifest(call: Call) -> Result<Reply, Rejection> {
    let pinned = call.server.app.session_manifest(call.caller()?, &call.session_id()?).await.map_err(refused)?;
    Ok(Reply::ok(&pinned.to_value()))
}

pub(crate) async fn remove_queued(call: Call) -> Result<Reply, Rejection> {
    let (id, message) = (call.session_id()?, call.message_id()?);
    call.server.app.queue_remove(call.caller()?, &id, &message).await.map_err(refused)?;
    Ok(Reply::ok(&removed(&message)))
}

pub(crate) async fn command(call: Call) -> Result<Reply, Rejection> {
    let command = Command::read(call.body()?)?;
    let accepted = call.server.app.command(call.caller()?, &call.session_id()?, command).await.map_err(refused)?;
    Ok(Reply::ok(&accepted.to_value()))
}
