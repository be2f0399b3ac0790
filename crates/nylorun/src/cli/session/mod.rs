//! `nylorun session`

mod events;
mod list;
mod settle;
mod show;

use clap::{Args, Subcommand};
use nylorun_client::{Command, CommandKind};

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::visible;
pub(super) use show::explain;

/// `nylorun session`
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List sessions
    List(list::ListArgs),
    /// Say where a session stands, and what it waits for
    Show(show::ShowArgs),
    /// Print the events of a session's record
    Events(events::EventsArgs),
    /// Print a session as a conversation
    Items(events::ItemsArgs),
    /// End the turn that runs
    Cancel(CancelArgs),
    /// Say what became of an effect whose outcome is unknown, so that its turn goes on
    Settle(settle::SettleArgs),
}

/// `nylorun session cancel`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session cancel ID
  nylorun session cancel ID --reason \"asked the wrong question\"

The session goes back to the turn's start; what the turn did outside is not undone.")]
pub(crate) struct CancelArgs {
    /// The session
    id: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List(args) => list::run(args).await,
        SessionCommand::Show(args) => show::run(args).await,
        SessionCommand::Events(args) => events::run(args).await,
        SessionCommand::Items(args) => events::items(args).await,
        SessionCommand::Cancel(args) => cancel(args).await,
        SessionCommand::Settle(args) => settle::run(args).await,
    }
}

async fn cancel(args: CancelArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let accepted = session.command(&Command::new(CommandKind::Cancel { reason: args.reason })?).await?;
    args.output.print(&accepted, |_| format!("cancelled {}\n", visible(&args.id)))
}
