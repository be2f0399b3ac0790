//! The tenant (api 3, 3.1).

use nylorun_wire::error::Rejection;
use nylorun_wire::tenant::{Reset, Seed, reset_done};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn status(call: Call) -> Result<Reply, Rejection> {
    let status = call.server.app.tenant_status().await.map_err(refused)?;
    Ok(Reply::ok(&status.to_value()))
}

pub(crate) async fn reset(call: Call) -> Result<Reply, Rejection> {
    let body = Reset::read(call.body()?).map_err(unreadable)?;
    call.server.app.reset(body).await.map_err(refused)?;
    Ok(Reply::ok(&reset_done()))
}

pub(crate) async fn seed(call: Call) -> Result<Reply, Rejection> {
    let body = Seed::read(call.body()?).map_err(unreadable)?;
    let seeded = call.server.app.seed(body).await.map_err(refused)?;
    Ok(Reply::ok(&seeded.to_value()))
}
