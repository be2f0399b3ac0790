//! The tenant's model (api 3.2).

use hyper::StatusCode;
use nylorun_wire::error::Rejection;
use nylorun_wire::model::{self, PutModel, SelectModel};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn view(call: Call) -> Result<Reply, Rejection> {
    let view = call.server.app.model_view().await.map_err(refused)?;
    Ok(Reply::ok(&view.to_value()))
}

pub(crate) async fn put(call: Call) -> Result<Reply, Rejection> {
    let body = PutModel::read(call.body()?).map_err(unreadable)?;
    let answer = call.server.app.model_put(body).await.map_err(refused)?;
    Ok(Reply::Json(StatusCode::OK, answer))
}

pub(crate) async fn select(call: Call) -> Result<Reply, Rejection> {
    let body = SelectModel::read(call.body()?).map_err(unreadable)?;
    let answer = call.server.app.model_select(body).await.map_err(refused)?;
    Ok(Reply::Json(StatusCode::OK, answer))
}

pub(crate) async fn catalogue(call: Call) -> Result<Reply, Rejection> {
    Ok(Reply::ok(&model::catalogue(call.server.app.model_catalogue())))
}

pub(crate) async fn providers(call: Call) -> Result<Reply, Rejection> {
    let providers = call.server.app.model_providers().await.map_err(refused)?;
    Ok(Reply::ok(&model::providers(&providers)))
}
