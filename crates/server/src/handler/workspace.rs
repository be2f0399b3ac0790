//! A session's workspace tools (api 2.5).

use nylorun_wire::error::Rejection;
use nylorun_wire::workspace::{outcome, tool_input};

use super::{refused, unreadable};
use crate::reply::Reply;
use crate::request::Call;

pub(crate) async fn call(call: Call) -> Result<Reply, Rejection> {
    let tool = call.tool()?;
    let input = tool_input(call.body()?).map_err(unreadable)?;
    let session = call.session_id()?;
    let given = call.server.app.workspace_tool(call.caller()?, &session, tool, input).await.map_err(refused)?;
    Ok(Reply::ok(&outcome(&given)))
}
