//! `nylorun session`

mod answer;
mod doubt;
mod events;
mod list;
mod pending;
mod queue;
mod settle;
mod show;

use clap::{Args, Subcommand};
use nylorun_client::{Command, CommandKind};

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::visible;
pub(super) use answer::answer;
pub(super) use doubt::{calls_in_doubt, explain};
pub(super) use pending::{Inputs, Question, QuestionKind, answers, asked, questions};

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
    /// Allow or refuse a call that a turn asks about
    Approve(answer::ApproveArgs),
    /// Answer a question of a turn
    Respond(answer::RespondArgs),
    /// List the messages that wait, or take one back
    Queue(queue::QueueArgs),
    /// Say what became of an effect whose outcome is unknown; a turn that waits for it goes on
    Settle(settle::SettleArgs),
}

/// `nylorun session cancel`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session cancel ID
  nylorun session cancel ID --reason \"asked the wrong question\"

The session goes back to the turn's start; what the turn did outside is not undone. Commands that were on their way
may have happened: `nylorun session show ID` names them.")]
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
        SessionCommand::Approve(args) => answer::approve(args).await,
        SessionCommand::Respond(args) => answer::respond(args).await,
        SessionCommand::Queue(args) => queue::run(args).await,
        SessionCommand::Settle(args) => settle::run(args).await,
    }
}

async fn cancel(args: CancelArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    // The answer to a cancel names no turn.
    let turn_id = session.view().await?.active_turn_id;
    let accepted = session.command(&Command::new(CommandKind::Cancel { reason: args.reason })?).await?;
    // It is cancelled whatever the answer of a look afterwards is.
    let uncertain = session.view().await.map(|view| view.uncertain_effects.len()).unwrap_or_default();
    args.output.print(&accepted, |_| match turn_id {
        Some(_) => cancelled(&args.id, uncertain),
        None => format!("no turn ran in {}: there was nothing to cancel\n", visible(&args.id)),
    })
}

fn cancelled(id: &str, uncertain: usize) -> String {
    let id = visible(id);
    let names = format!("`nylorun session show {id}`");
    match uncertain {
        0 => format!("cancelled {id}\n"),
        1 => format!("cancelled {id}; 1 effect may have happened: {names} says which\n"),
        _ => format!("cancelled {id}; {uncertain} effects may have happened: {names} says which\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::cancelled;

    #[test]
    fn a_cancel_says_what_may_have_happened() {
        assert_eq!(cancelled("s1", 0), "cancelled s1\n");
        assert_eq!(
            cancelled("s1", 2),
            "cancelled s1; 2 effects may have happened: `nylorun session show s1` says which\n"
        );
    }
}
