//! `nylorun session approve` and `nylorun session respond`: answers to what a paused turn asks.

use clap::Args;
use nylorun_client::{Approval, Command, CommandKind};
use nylorun_domain::json;
use serde_json::Value;

use super::super::connect::ConnectArgs;
use super::super::document;
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
    let value = answer(&args.value).map_err(|problem| Failure::usage(format!("the answer {problem}")))?;
    let session = args.connect.connection()?.client()?.session(&args.id);
    let kind = CommandKind::Respond { interaction_id: args.interaction.clone(), value };
    let accepted = session.command(&Command::new(kind)?).await?;
    args.output.print(&accepted, |_| format!("answered {}; the turn goes on\n", visible(&args.interaction)))
}

/// JSON as it is, anything else as text.
///
/// # Errors
/// It is meant as JSON, and none that can be sent: why, and what would help.
pub(crate) fn answer(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(_) if is_meant_as_json(text) => Err(format!(
            "cannot be sent as JSON: {}; to send it as text, put it in quotation marks: {}",
            document::not_json(text),
            Value::from(text)
        )),
        Err(_) => Ok(Value::from(text)),
    }
}

/// JSON that does not fit, such as 1e999; or what begins as an object or a list does and ends as one, or breaks off.
fn is_meant_as_json(text: &str) -> bool {
    let trimmed = text.trim();
    let begins = |opening: char, first: &[char]| {
        trimmed.strip_prefix(opening).is_some_and(|inside| inside.trim_start().starts_with(first))
    };
    json::parse(text).is_ok() || begins('{', &['"']) || begins('[', &['"', '{'])
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
            ("[x] done", json!("[x] done")),
            ("0042", json!("0042")),
            ("1e9 or so", json!("1e9 or so")),
            ("\"1e999\"", json!("1e999")),
            ("", json!("")),
        ] {
            assert_eq!(answer(text), Ok(value), "{text:?}");
        }
    }

    #[test]
    fn what_is_meant_as_json_and_cannot_be_sent_is_refused() {
        let refused = |text: &str| answer(text).unwrap_err();
        for number in ["1e999", "-1e999", "[1e999]"] {
            let told = refused(number);
            assert!(told.starts_with("cannot be sent as JSON: a number in it is beyond 1.7e308"), "{told}");
            assert!(told.ends_with(&format!("put it in quotation marks: \"{number}\"")), "{told}");
        }
        assert!(refused(r#"{"choice": 2"#).contains("not JSON: "));
        assert!(refused(r#"["a", b]"#).contains("at line 1, column 7"));
    }
}
