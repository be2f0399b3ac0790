//! Settling of uncertain effects (decisions, Settling).

use nylorun_wire::effect::Settle;
use nylorun_wire::error::Rejection;

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn settle(call: Call) -> Result<Reply, Rejection> {
    let body = Settle::read(call.body()?).map_err(unreadable)?;
    let (session, effect) = (call.session_id()?, call.effect_id()?);
    let accepted = call.server.app.effect_settle(call.caller()?, &session, &effect, body).await.map_err(refused)?;
    Ok(Reply::ok(&accepted.to_value()))
}
