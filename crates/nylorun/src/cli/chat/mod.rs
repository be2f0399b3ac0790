//! `nylorun chat`: a conversation with an agent, from a terminal.

mod input;
mod turn;

use std::io::{self, IsTerminal as _, Write as _};

use clap::Args;
use nylorun_client::{Client, Environment, Error, InlineEnvironment, OpenSession, SessionStatus, SessionView, uuid_v4};

use super::connect::ConnectArgs;
use super::failure::{Exit, Failure};
use super::session::{calls_in_doubt, explain};
use super::show::{EventPrinter, View};
use super::term::{Style, Tone, visible};
use input::{HELP, Interrupts, Lines, Typed};
use turn::{Ended, Turn};

/// `nylorun chat`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun chat assistant
  nylorun chat assistant --session ID                       go on with a session
  nylorun chat assistant --message \"What is in this folder?\"
  git diff | nylorun chat reviewer --json                   one message, events as JSON

At the prompt, /help lists the commands and /quit leaves; a line that begins with // is sent with one / less. Ctrl-C \
cancels the turn that runs; a second one leaves. A lost connection is taken up again where it broke, and so is a turn \
that ran on while nobody looked. With one message, exit code 1 says that its turn did not complete.")]
pub(crate) struct ChatArgs {
    /// Id of the agent, as `nylorun agent list` names it
    agent: String,
    /// Go on with the session of this id, or open one under it [default: a new session]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Send this message, print the answer and leave; a message on standard input does the same
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Open the session with a workspace of its own, whatever the tenant's default
    #[arg(long, conflicts_with = "no_sandbox")]
    sandbox: bool,
    /// Open the session without a workspace
    #[arg(long)]
    no_sandbox: bool,
    /// Owner of a new session [default: the value of USER]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Print events as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Talks until there is nothing more to say.
///
/// # Errors
/// What the server refused, that it could not be reached, or that the last turn did not complete.
pub(crate) async fn run(args: ChatArgs) -> Result<(), Failure> {
    // Before anything is opened: a session without a message would stay behind.
    let message = match (&args.message, io::stdin().is_terminal()) {
        (Some(message), _) => Some(input::message(message)?),
        (None, false) => Some(input::whole_stdin()?),
        (None, true) => None,
    };
    let client = args.connect.connection()?.client()?;
    let opened = open(&client, &args).await?;
    let view = if args.json { View::Json } else { View::Conversation };
    let printer = EventPrinter::new(io::stdout(), Style::of_stdout(), view);
    let mut turn = Turn::new(client.session(opened.id.as_str()), printer, Interrupts::of_terminal()?);
    if let Some(turn_id) = opened.active_turn_id.as_deref().filter(|_| goes_on(&opened.status)) {
        turn.attach(turn_id).await?;
    }
    match message {
        Some(message) => match turn.run(&message).await? {
            Ended::Completed => Ok(()),
            Ended::Otherwise | Ended::Left => Err(Failure::told()),
        },
        None => talk(&mut turn).await,
    }
}

/// Finds the session, or opens it, and says which it is.
async fn open(client: &Client, args: &ChatArgs) -> Result<SessionView, Failure> {
    let id = match &args.session {
        Some(id) => match client.session(id).view().await {
            Ok(view) if view.agent_id == args.agent => {
                say(&format!("going on with session {id} ({})", view.status));
                if args.sandbox || args.no_sandbox {
                    say("its workspace stays as it was opened: --sandbox and --no-sandbox are for a new session");
                }
                let calls = calls_in_doubt(&client.session(id), &view).await?;
                let explained =
                    view.uncertain_effects.iter().map(|effect| explain(&view, effect, &calls, &Style::of_stderr()));
                write_stderr(&explained.collect::<String>());
                return Ok(view);
            }
            Ok(view) => {
                let what = format!("session {id} belongs to agent {}, not {}", view.agent_id, args.agent);
                return Err(Failure::usage(what));
            }
            Err(Error::Refused(refusal)) if refusal.status == 404 => id.clone(),
            Err(error) => return Err(error.into()),
        },
        None => uuid_v4().map_err(|error| Failure::new(format!("no random numbers: {error}")))?,
    };
    let opened = client.open_session(&id, &open_session(args)).await;
    let opened = opened.map_err(|error| unknown_agent(error, &args.agent))?;
    say(&format!("session {id}"));
    Ok(opened)
}

/// Whether a turn in this status moves by itself.
fn goes_on(status: &SessionStatus) -> bool {
    match status {
        SessionStatus::Runnable | SessionStatus::Running | SessionStatus::Waiting => true,
        SessionStatus::Idle
        | SessionStatus::Paused
        | SessionStatus::Uncertain
        | SessionStatus::Completed
        | SessionStatus::Failed
        | SessionStatus::Cancelled
        | SessionStatus::Other(_) => false,
    }
}

/// Standard error, so that standard output holds the answer alone.
fn say(text: &str) {
    write_stderr(&format!("{}\n", Style::of_stderr().paint(Tone::Faint, &visible(text))));
}

fn write_stderr(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn open_session(args: &ChatArgs) -> OpenSession {
    let user = args.user.clone().or_else(|| std::env::var("USER").ok().filter(|user| !user.is_empty()));
    let environment = match (args.sandbox, args.no_sandbox) {
        (true, _) => Some(Environment::Inline(InlineEnvironment::default())),
        (false, true) => Some(Environment::Without),
        (false, false) => None,
    };
    OpenSession { environment, ..OpenSession::new(&args.agent, user.as_deref().unwrap_or("local")) }
}

fn unknown_agent(error: Error, agent: &str) -> Failure {
    match error.refusal() {
        Some(refusal) if refusal.status == 404 => Failure::new(format!("there is no agent {agent}"))
            .remedy("`nylorun agent list` names them; `nylorun agent save FILE` saves one"),
        _ => error.into(),
    }
}

/// Line for line, until `/quit`, the end of input, or Ctrl-C at the prompt.
async fn talk(turn: &mut Turn) -> Result<(), Failure> {
    let mut lines = Lines::of_stdin();
    loop {
        prompt();
        let line = tokio::select! {
            line = lines.next() => line,
            () = turn.interrupts.next() => None,
        };
        let Some(line) = line else {
            // The shell's prompt begins on a line of its own.
            write_stderr("\n");
            return Ok(());
        };
        let message = match Typed::read(&line) {
            Typed::Nothing => continue,
            Typed::Quit => return Ok(()),
            Typed::Help => {
                write_stderr(HELP);
                continue;
            }
            Typed::Unknown(word) => {
                say(&format!("there is no command {word}; /help lists them, and //… sends a line that begins with /"));
                continue;
            }
            Typed::Message(message) => message,
        };
        match turn.run(message).await {
            Ok(Ended::Left) => return Err(Failure::told()),
            Ok(Ended::Completed | Ended::Otherwise) => {}
            // A message that was refused is no reason to leave.
            Err(failure) if failure.exit == Exit::Failed => failure.print(&mut io::stderr(), &Style::of_stderr()),
            Err(failure) => return Err(failure),
        }
    }
}

fn prompt() {
    write_stderr(&format!("{} ", Style::of_stderr().paint(Tone::Strong, ">")));
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Cli, ClientCommand, Command};
    use super::*;

    fn parsed(words: &[&str]) -> Option<ChatArgs> {
        match Cli::try_parse_from(["nylorun", "chat", "a"].iter().chain(words)).ok()?.command {
            Command::Client(ClientCommand::Chat(args)) => Some(args),
            _ => None,
        }
    }

    #[test]
    fn the_workspace_is_as_asked() {
        let environment = |words: &[&str]| open_session(&parsed(words).unwrap()).environment;
        assert_eq!(environment(&[]), None);
        assert_eq!(environment(&["--sandbox"]), Some(Environment::Inline(InlineEnvironment::default())));
        assert_eq!(environment(&["--no-sandbox"]), Some(Environment::Without));
        assert!(parsed(&["--sandbox", "--no-sandbox"]).is_none());
        assert_eq!(open_session(&parsed(&["--user", "ann"]).unwrap()).owner_user_id, "ann");
    }
}
