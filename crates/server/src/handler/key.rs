//! Keys of callers (api 3).

use nylorun_domain::grammar::is_key_id;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;
use nylorun_wire::key;

use super::refused;
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn list(call: Call) -> Result<Reply, Rejection> {
    let keys = call.server.app.key_list().await.map_err(refused)?;
    Ok(Reply::ok(&key::list(&keys)))
}

pub(crate) async fn put(call: Call) -> Result<Reply, Rejection> {
    let made = call.server.app.key_put(key_id(&call)?).await.map_err(refused)?;
    Ok(Reply::ok(&made.to_value()))
}

pub(crate) async fn delete(call: Call) -> Result<Reply, Rejection> {
    let id = key_id(&call)?;
    call.server.app.key_delete(id).await.map_err(refused)?;
    Ok(Reply::ok(&key::deleted(id)))
}

fn key_id(call: &Call) -> Result<&str, Rejection> {
    let id = call.param("keyId");
    if is_key_id(id) {
        return Ok(id);
    }
    let message = "A key's name is a lower-case letter, then up to 31 lower-case letters, digits or hyphens";
    Err(Rejection::new(400, Code::InvalidRequest, message))
}
