//! `nylorun session events` and `nylorun session items`

use std::io;

use clap::Args;
use nylorun_client::{Follow, Session};

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::show::{EventPrinter, View};
use super::super::term::Style;

/// `nylorun session events`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session events ID
  nylorun session events ID --follow
  nylorun session events ID --json | jq -c 'select(.type == \"tool.completed\")'
  nylorun session events ID --follow --after CURSOR --json      resume, without gap or repetition")]
pub(crate) struct EventsArgs {
    /// The session
    id: String,
    /// Go on as events come, through lost connections, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only events after this one: the `cursor` of an event
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// One event a line, as JSON exactly as it came
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun session items`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session items ID
  nylorun session items ID --json | jq -r 'select(.type == \"message.assistant\").payload.text'")]
pub(crate) struct ItemsArgs {
    /// The session
    id: String,
    /// Only what came after this event: its `cursor`
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// One event a line, as JSON exactly as it came
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints the record.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: EventsArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let mut printer = printer(if args.json { View::Json } else { View::Record });
    if !args.follow {
        return print_history(&session, args.after.as_deref(), &mut printer).await;
    }
    let mut events = session.events(Follow { after: args.after, ..Follow::default() });
    while let Some(update) = events.next().await {
        printer.update(&update?)?;
    }
    Ok(())
}

/// Prints the conversation.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn items(args: ItemsArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let mut printer = printer(if args.json { View::Json } else { View::Conversation });
    print_history(&session, args.after.as_deref(), &mut printer).await
}

fn printer(view: View) -> EventPrinter<io::Stdout> {
    EventPrinter::new(io::stdout(), Style::of_stdout(), view)
}

async fn print_history(
    session: &Session,
    after: Option<&str>,
    printer: &mut EventPrinter<io::Stdout>,
) -> Result<(), Failure> {
    for event in session.history(after, None).await?.items {
        printer.event(&event)?;
    }
    Ok(())
}
