//! `nylorun session approve` and `nylorun session respond`: answers to what a paused turn asks.

use clap::Args;
use nylorun_client::{Approval, Command, CommandKind};
use serde_json::Value;

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::term::visible;

/// `nylorun session approve`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session show ID                        what is asked, and the commands that answer
  nylorun session approve ID INTERACTION
  nylorun session approve ID INTERACTION --deny")]
pub(crate) struct ApproveArgs {
    /// The session
    id: String,
    /// The question, as `nylorun session show` names it
    interaction: String,
    /// The call may not run; the model is told so
    #[arg(long)]
    deny: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun session respond`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session respond ID INTERACTION \"the second one\"
  nylorun session respond ID INTERACTION '{\"choice\":2}'")]
pub(crate) struct RespondArgs {
    /// The session
    id: String,
    /// The question, as `nylorun session show` names it
    interaction: String,
    /// The answer: JSON, or else it is taken as text
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Allows or refuses a call.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn approve(args: ApproveArgs) -> Result<(), Failure> {
    let (approval, done) = if args.deny { (Approval::Denied, "denied") } else { (Approval::Approved, "approved") };
    let session = args.connect.connection()?.client()?.session(&args.id);
    let kind = CommandKind::Approve { interaction_id: args.interaction.clone(), approval };
    let accepted = session.command(&Command::new(kind)?).await?;
    args.output.print(&accepted, |_| format!("{done} {}; the turn goes on\n", visible(&args.interaction)))
}

/// Answers a question.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn respond(args: RespondArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let kind = CommandKind::Respond { interaction_id: args.interaction.clone(), value: answer(&args.value) };
    let accepted = session.command(&Command::new(kind)?).await?;
    args.output.print(&accepted, |_| format!("answered {}; the turn goes on\n", visible(&args.interaction)))
}

/// JSON as it is, anything else as text.
pub(crate) fn answer(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_json_or_else_text() {
        for (text, value) in [
            ("yes, please", json!("yes, please")),
            ("2", json!(2)),
            ("\"2\"", json!("2")),
            (r#"{"a":[1]}"#, json!({"a": [1]})),
            ("{a", json!("{a")),
            ("", json!("")),
        ] {
            assert_eq!(answer(text), value, "{text:?}");
        }
    }
}
