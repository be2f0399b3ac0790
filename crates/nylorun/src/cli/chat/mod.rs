//! `nylorun chat`: a conversation with an agent, from a terminal.

mod ask;
mod input;
mod owed;
mod reach;
mod turn;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use nylorun_client::{Client, Environment, Error, InlineEnvironment, OpenSession, SessionStatus, SessionView, uuid_v4};
use nylorun_domain::grammar::parse_duration_ms;

use super::connect::ConnectArgs;
use super::failure::{Exit, Failure};
use super::session::{calls_in_doubt, explain};
use super::show::{EventPrinter, View};
use super::term::{Style, Tone, visible};
use input::{HELP, Interrupts, Keyboard, Lines, Typed, WhenBusy, write_stderr};
use reach::Reach;
use turn::{Ended, Turn, unknown};

/// `nylorun chat`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun chat assistant
  nylorun chat assistant --session ID                       go on with a session
  nylorun chat assistant --message \"What is in this folder?\"
  git diff | nylorun chat reviewer --json                   one message, events as JSON
  nylorun chat assistant --session ID --when-busy steer --message \"Use the staging server.\"

At the prompt, /help lists the commands and /quit leaves; a line that begins with // is sent with one / less. Ctrl-C \
cancels the turn that runs; a second one leaves. A lost connection is taken up again where it broke, and so is a turn \
that ran on while nobody looked. A turn that asks is answered at the terminal: y or n for a call, a line for a \
question. Without a terminal, what is asked is printed with the commands that answer it.

With one message, exit code 1 says that its turn did not complete: it failed, was cancelled, or waits for somebody; \
exit code 3, that the server stayed away: then the command is named that goes on with the turn.")]
pub(crate) struct ChatArgs {
    /// Id of the agent, as `nylorun agent list` names it
    agent: String,
    /// Go on with the session of this id, or open one under it [default: a new session]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Send this message, print the answer and leave; a message on standard input does the same
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// What a message does that comes while a turn runs [default: a line typed meanwhile is queued; one message waits
    /// for the turn and is sent then]
    #[arg(long, value_enum, value_name = "MODE")]
    when_busy: Option<WhenBusy>,
    /// Talk and ask line by line although standard input is no terminal
    #[arg(long)]
    interactive: bool,
    /// Open the session with a workspace of its own, whatever the tenant's default
    #[arg(long, conflicts_with = "no_sandbox")]
    sandbox: bool,
    /// Open the session without a workspace
    #[arg(long)]
    no_sandbox: bool,
    /// Owner of a new session [default: the value of USER]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// With one message: how long a server may stay away before it is given up
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2m")]
    give_up_after: Duration,
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
    let is_person = args.interactive || io::stdin().is_terminal();
    let message = match (&args.message, is_person) {
        (Some(message), _) => Some(input::message(message)?),
        (None, false) => Some(input::whole_stdin()?),
        (None, true) => None,
    };
    let connection = args.connect.connection()?;
    let client = connection.client()?;
    let opened = open(&client, &args).await?;
    let view = if args.json { View::Json } else { View::Conversation };
    let printer = EventPrinter::new(io::stdout(), Style::of_stdout(), view);
    let keyboard = match (is_person, &message) {
        (false, _) => Keyboard::Nobody,
        (true, Some(_)) => Keyboard::Answers(None),
        (true, None) => Keyboard::Talks(Lines::of_stdin()),
    };
    let session = client.session(opened.id.as_str());
    let when_busy = args.when_busy.unwrap_or(WhenBusy::Queue);
    let patience = message.as_ref().map(|_| args.give_up_after);
    let reach = Reach::new(args.connect.clone(), &connection, &args.agent, patience);
    let mut turn = Turn::new(session, reach, printer, Interrupts::of_terminal()?, keyboard, when_busy);
    let ended = match (&message, args.when_busy) {
        (Some(message), Some(when_busy)) => turn.run_when_busy(message, when_busy).await?,
        (Some(message), None) => match wait_until_free(&mut turn, opened).await? {
            Some(rests) => rests,
            None => turn.run(message).await?,
        },
        (None, _) => match attach(&mut turn, &opened).await? {
            Some(Ended::Left) => Ended::Left,
            Some(Ended::Completed | Ended::Otherwise | Ended::Waits) | None => return talk(&mut turn).await,
        },
    };
    match ended {
        Ended::Completed => Ok(()),
        Ended::Otherwise | Ended::Waits | Ended::Left => Err(Failure::told()),
    }
}

fn time(text: &str) -> Result<Duration, &'static str> {
    let length = parse_duration_ms(text).map(i64::unsigned_abs).map(Duration::from_millis);
    length.map_err(|_| "expected a whole number above 0 and ms, s, m, h or d, such as 2m")
}

/// Waits for the turn that runs, and for those of messages that wait already. Answers how the last one ended when it
/// leaves the session in the way.
async fn wait_until_free(turn: &mut Turn, mut view: SessionView) -> Result<Option<Ended>, Failure> {
    loop {
        match attach(turn, &view).await? {
            Some(rests @ (Ended::Waits | Ended::Left)) => return Ok(Some(rests)),
            Some(Ended::Completed | Ended::Otherwise) => view = turn.session.view().await?,
            None => return Ok(None),
        }
    }
}

/// Goes on with the turn that has not ended, if there is one.
async fn attach(turn: &mut Turn, opened: &SessionView) -> Result<Option<Ended>, Failure> {
    match opened.active_turn_id.as_deref().filter(|_| goes_on(&opened.status)) {
        Some(turn_id) => turn.attach(turn_id).await.map(Some),
        None => Ok(None),
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

/// Whether a turn in this status moves by itself, or with an answer.
fn goes_on(status: &SessionStatus) -> bool {
    match status {
        SessionStatus::Runnable | SessionStatus::Running | SessionStatus::Waiting | SessionStatus::Paused => true,
        SessionStatus::Idle
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
    loop {
        prompt();
        let line = tokio::select! {
            line = turn.keyboard.line() => line,
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
                say(&unknown(word));
                continue;
            }
            Typed::Message(message) | Typed::When(_, message) => message,
        };
        match turn.run(message).await {
            Ok(Ended::Left) => return Err(Failure::told()),
            Ok(Ended::Completed | Ended::Otherwise | Ended::Waits) => {}
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
