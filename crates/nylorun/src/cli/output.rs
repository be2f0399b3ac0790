//! Data on standard output, for people or for programs.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use super::failure::Failure;

/// `--json`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

impl OutputArgs {
    /// Prints the data as JSON, or else the text that `people` makes of it.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(crate) fn print<T: Serialize>(self, data: &T, people: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let text = if self.json { to_json(data)? } else { people(data) };
        print(&text)
    }
}

/// Writes text to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn to_json<T: Serialize>(data: &T) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(data);
    text.map(|text| text + "\n").map_err(|error| Failure::new(format!("the answer cannot be printed: {error}")))
}
