//! `nylorun session queue`: messages that wait in a session.

use std::time::SystemTime;

use clap::Args;
use serde_json::{Value, json};

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::show::plain;
use super::super::term::{Style, ago, one_line, table, visible};

/// `nylorun session queue`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session queue ID
  nylorun session queue ID --remove MESSAGE      take a message back that nobody has read

Messages wait when they were sent while a turn ran: `nylorun chat --when-busy queue` or `steer`.")]
pub(crate) struct QueueArgs {
    /// The session
    id: String,
    /// Take back the message of this id
    #[arg(long, value_name = "MESSAGE")]
    remove: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Lists what waits, or takes a message back.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: QueueArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    if let Some(message) = &args.remove {
        session.remove_queued(message).await?;
        let removed = json!({"id": message, "deleted": true});
        return args.output.print(&removed, |_| format!("took back {}: nobody has read it\n", visible(message)));
    }
    let view = session.view().await?;
    let queue = view.other.get("queue").and_then(Value::as_array).cloned().unwrap_or_default();
    args.output.print(&queue, |queue| told(&args.id, queue, SystemTime::now()))
}

fn told(id: &str, queue: &[Value], now: SystemTime) -> String {
    if queue.is_empty() {
        return format!("nothing waits in {}\n", visible(id));
    }
    let rows: Vec<[String; 4]> = queue.iter().map(|message| row(message, now)).collect();
    table(["MESSAGE", "MODE", "SENT", "TEXT"], &rows, &Style::of_stdout())
}

fn row(message: &Value, now: SystemTime) -> [String; 4] {
    let text = |name: &str| message.get(name).map(plain).unwrap_or_default();
    let said = ["content", "data", "parts"].map(text).concat();
    [one_line(&text("id"), 60), one_line(&text("mode"), 10), ago(&text("at"), now), one_line(&said, 80)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_stands_in_its_order() {
        let now = SystemTime::UNIX_EPOCH;
        let at = "1970-01-01T00:00:00.000Z";
        let message =
            |id: &str, mode: &str, said: &str, value: Value| json!({"id": id, "mode": mode, "at": at, said: value});
        let queue =
            [message("t2", "queue", "content", json!("and\nthen")), message("t3", "steer", "data", json!({"a": 1}))];
        let expected = "\
MESSAGE  MODE   SENT      TEXT
t2       queue  just now  and then
t3       steer  just now  {\"a\":1}
";
        assert_eq!(told("s1", &queue, now), expected);
        assert_eq!(told("s1", &[], now), "nothing waits in s1\n");
    }
}
