//! The tenant's settings for workspaces (api 3.6).

use nylorun_wire::error::Rejection;
use nylorun_wire::sandbox::settings;

use super::refused;
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn view(call: Call) -> Result<Reply, Rejection> {
    let view = call.server.app.sandbox_view().await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn put(call: Call) -> Result<Reply, Rejection> {
    let view = call.server.app.set_sandbox(settings(call.body()?)).await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}
