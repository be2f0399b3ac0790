//! How long the tenant keeps what nobody works with any more.

use nylorun_wire::error::Rejection;
use nylorun_wire::retention::{read, to_value};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn view(call: Call) -> Result<Reply, Rejection> {
    let retention = call.server.app.retention().await.map_err(refused)?;
    Ok(Reply::ok(&to_value(&retention)))
}

pub(crate) async fn put(call: Call) -> Result<Reply, Rejection> {
    let retention = read(call.body()?.value()).map_err(unreadable)?;
    let retention = call.server.app.set_retention(retention).await.map_err(refused)?;
    Ok(Reply::ok(&to_value(&retention)))
}
