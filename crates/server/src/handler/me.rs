//! Who the caller is, and what proves what this runtime signs (api 7.4, 7.5).

use nylorun_domain::issuer::Agents;
use nylorun_domain::json::Value;
use nylorun_wire::error::Rejection;
use nylorun_wire::me::Me;

use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn me(call: Call) -> Result<Reply, Rejection> {
    let person = call.caller()?.person();
    let me = Me {
        subject: call.caller()?.only_owner().map(|user| user.as_str().to_owned()),
        scopes: call.caller()?.scopes(),
        agents: person.and_then(|person| match &person.agents {
            Agents::All => None,
            Agents::Only(agents) => Some(agents.iter().map(|agent| agent.as_str().to_owned()).collect()),
        }),
        sandboxes: person.map(|person| person.environments.clone()),
        via: call.caller()?.via(),
    };
    Ok(Reply::ok(&me.to_value()))
}

/// No token is signed yet, so that no key is there either: the set is empty.
pub(crate) async fn signing_keys(_: Call) -> Result<Reply, Rejection> {
    Ok(Reply::ok(&Value::object([("keys", Value::Array(Vec::new()))])))
}
