//! Definition files (api 2.1).

use hyper::StatusCode;
use nylorun_app::Placed;
use nylorun_domain::definition_file::FileHash;
use nylorun_wire::error::Rejection;
use nylorun_wire::file;

use super::refused;
use crate::reply::Reply;
use crate::request::{Call, parse_id};

pub(crate) async fn put(mut call: Call) -> Result<Reply, Rejection> {
    let file = name(&call)?;
    let mut upload = call.upload()?;
    let stored = match call.server.app.file_put(file, upload.chunks()).await {
        Ok(stored) => stored,
        Err(error) => {
            upload.discard().await;
            return Err(refused(error));
        }
    };
    let status = match stored.placed {
        Placed::New => StatusCode::CREATED,
        Placed::Replaced => StatusCode::OK,
    };
    Ok(Reply::Json(status, file::stored(&stored.file, stored.size_bytes).to_json()))
}

pub(crate) async fn head(call: Call) -> Result<Reply, Rejection> {
    let file = name(&call)?;
    if call.server.app.file_is_stored(&file).await.map_err(refused)? {
        Ok(Reply::Empty)
    } else {
        Err(Rejection::missing(format!("No file {file}")))
    }
}

fn name(call: &Call) -> Result<FileHash, Rejection> {
    parse_id("file", call.param("file"), FileHash::parse)
}
