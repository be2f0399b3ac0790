//! `nylorun openapi`: the OpenAPI documents of both APIs, made from the route table.

use std::io::Write as _;

use crate::cli::{Failure, OpenapiArgs, OpenapiDocument};

/// Prints one document.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run(args: OpenapiArgs) -> Result<(), Failure> {
    let document = match args.document {
        OpenapiDocument::Runtime => nylorun_server::runtime_document(),
        OpenapiDocument::Management => nylorun_server::management_document(),
    };
    writeln!(std::io::stdout(), "{}", document.to_json())?;
    Ok(())
}
