//! Who the caller is (api 7.5).

use nylorun_wire::error::Rejection;
use nylorun_wire::me::Me;

use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn me(call: Call) -> Result<Reply, Rejection> {
    let me = Me {
        subject: call.caller.only_owner().map(|user| user.as_str().to_owned()),
        scopes: call.caller.scopes().iter().map(|scope| scope.as_str()).collect(),
        via: call.caller.via(),
    };
    Ok(Reply::ok(&me.to_value()))
}
