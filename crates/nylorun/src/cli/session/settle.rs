//! `nylorun session settle`

use clap::Args;
use nylorun_client::{Settle, Settlement};
use serde_json::Value;

use super::super::connect::ConnectArgs;
use super::super::document;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::term::visible;

/// `nylorun session settle`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session settle ID EFFECT --value '{\"exitCode\":0,\"stdout\":\"\",\"stderr\":\"\"}'
  nylorun session settle ID EFFECT --error \"the command's answer was lost\"
  nylorun session settle ID EFFECT --retry

`nylorun session show ID` names the effects whose outcome is unknown. One whose turn has ended takes --value or --error:
nothing goes on, and it is not counted any more.")]
pub(crate) struct SettleArgs {
    /// The session
    id: String,
    /// The effect
    effect: String,
    #[command(flatten)]
    settlement: SettlementArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SettlementArgs {
    /// It happened, with this result
    #[arg(long, value_name = "JSON", value_parser = json)]
    value: Option<Value>,
    /// It failed, or did not happen and shall not
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// It did not happen, or may happen twice: run it again
    #[arg(long)]
    retry: bool,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|_| document::not_json(text))
}

impl SettlementArgs {
    /// The one that was given; the command line lets exactly one through.
    fn settlement(self) -> Settlement {
        match (self.value, self.error) {
            (Some(value), _) => Settlement::Value(value),
            (None, Some(error)) => Settlement::Error(error),
            (None, None) => Settlement::Retry,
        }
    }
}

/// Settles it.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: SettleArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let answer = session.settle(&Settle::new(&args.effect, args.settlement.settlement())?).await?;
    args.output.print(&answer, |answer| told(&args.effect, answer))
}

/// The answer names a turn only if it was waiting.
fn told(effect: &str, answer: &Value) -> String {
    let follows = match answer.get("turnId").and_then(Value::as_str) {
        Some(_) => "the turn goes on when nothing else of it is unknown",
        None => "its turn had ended, so nothing follows",
    };
    format!("settled {}; {follows}\n", visible(effect))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::super::super::{Cli, ClientCommand, Command};
    use super::super::SessionCommand;
    use super::*;

    fn settlement(words: &[&str]) -> Option<Settlement> {
        let words = ["nylorun", "session", "settle", "s", "e"].iter().chain(words);
        match Cli::try_parse_from(words).ok()?.command {
            Command::Client(ClientCommand::Session(SessionCommand::Settle(args))) => Some(args.settlement.settlement()),
            _ => None,
        }
    }

    #[test]
    fn what_follows_is_said() {
        let goes_on = "settled e1; the turn goes on when nothing else of it is unknown\n";
        assert_eq!(told("e1", &json!({"status": "accepted", "turnId": "t1"})), goes_on);
        assert_eq!(told("e1", &json!({"turnId": null})), "settled e1; its turn had ended, so nothing follows\n");
    }

    #[test]
    fn exactly_one_settlement() {
        assert_eq!(settlement(&["--value", "null"]), Some(Settlement::Value(Value::Null)));
        assert_eq!(settlement(&["--value", r#"{"a":1}"#]), Some(Settlement::Value(json!({"a": 1}))));
        assert_eq!(settlement(&["--error", "lost"]), Some(Settlement::Error("lost".into())));
        assert_eq!(settlement(&["--retry"]), Some(Settlement::Retry));
        for wrong in [&[][..], &["--value", "x"], &["--retry", "--error", "x"], &["--value", "1", "--retry"]] {
            assert_eq!(settlement(wrong), None, "{wrong:?}");
        }
    }
}
