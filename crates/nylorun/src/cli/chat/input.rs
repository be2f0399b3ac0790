//! What the person types.

use std::io::{self, BufRead as _, Read as _, Write as _};

use clap::ValueEnum;
use nylorun_client::{CommandKind, Content};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::super::failure::Failure;

/// What may be typed at the prompt besides messages.
pub(super) const HELP: &str = "\
/help        this list
/quit        leave; so do /exit and the end of input (Ctrl-D). The session stays: --session ID goes on with it
//TEXT       send a message that begins with one /
Ctrl-C       cancel the turn that runs; a second one leaves
While a turn runs, a line waits and begins the next turn, unless --when-busy steer was given:
/steer TEXT  the turn that runs reads it at its next step
/queue TEXT  it begins the next turn
";

/// A line that was typed at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// Nothing to send.
    Nothing,
    /// A message.
    Message(&'a str),
    /// A message that says what it wants while a turn runs.
    When(WhenBusy, &'a str),
    /// The list of commands is wanted.
    Help,
    /// No more.
    Quit,
    /// A command that there is not.
    Unknown(&'a str),
}

impl<'a> Typed<'a> {
    /// Reads a line. A command is a first word of `/` and letters alone: a path such as `/workspace/a` is a message.
    pub(super) fn read(line: &'a str) -> Self {
        let trimmed = line.trim();
        if trimmed.starts_with("//") {
            return Self::Message(&trimmed[1..]);
        }
        let Some(first) = trimmed.split_whitespace().next() else { return Self::Nothing };
        let is_command =
            first.strip_prefix('/').is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let rest = trimmed.get(first.len()..).unwrap_or_default().trim_start();
        match (first, rest) {
            ("/steer", text) if !text.is_empty() => return Self::When(WhenBusy::Steer, text),
            ("/queue", text) if !text.is_empty() => return Self::When(WhenBusy::Queue, text),
            _ => {}
        }
        match trimmed {
            "/help" => Self::Help,
            "/quit" | "/exit" => Self::Quit,
            _ if is_command => Self::Unknown(first),
            _ => Self::Message(line),
        }
    }
}

/// What a message wants that is sent while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenBusy {
    /// Begin a turn of its own when the active one has ended
    Queue,
    /// Be read by the active turn at its next step
    Steer,
}

impl WhenBusy {
    /// The command with this text.
    pub(super) fn command(self, text: &str) -> CommandKind {
        let content = Content::Text(text.to_owned());
        match self {
            Self::Queue => CommandKind::Queue(content),
            Self::Steer => CommandKind::Steer(content),
        }
    }
}

/// Who sits at standard input.
pub(super) enum Keyboard {
    /// Nobody: a program, a file, or nothing.
    Nobody,
    /// Somebody who answers when asked. Nothing is read before: it may be meant for another program.
    Answers(Option<Lines>),
    /// Somebody who talks, also while a turn runs.
    Talks(Lines),
}

impl Keyboard {
    /// Whether somebody can be asked.
    pub(super) fn is_somebody(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Answers(_) | Self::Talks(_) => true,
        }
    }

    /// The next line; `None` at the end, or when there is nobody. Cancel safe.
    pub(super) async fn line(&mut self) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::Answers(lines) => lines.get_or_insert_with(Lines::of_stdin).next().await,
            Self::Talks(lines) => lines.next().await,
        }
    }

    /// The next line that is typed without being asked for; never comes at the end. Cancel safe.
    pub(super) async fn meanwhile(&mut self) -> String {
        if let Self::Talks(lines) = self
            && let Some(line) = lines.next().await
        {
            return line;
        }
        std::future::pending().await
    }
}

/// Standard error, so that standard output holds the answer alone.
pub(super) fn write_stderr(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Lines of standard input. They are read by a thread of their own, since a read of a terminal cannot be interrupted.
pub(super) struct Lines {
    receiver: mpsc::Receiver<String>,
}

impl Lines {
    /// Begins to read.
    pub(super) fn of_stdin() -> Self {
        let (sender, receiver) = mpsc::channel(16);
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self { receiver }
    }

    /// The next line; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.receiver.recv().await
    }
}

/// Ctrl-C. From here on it no longer ends the process, and none is lost between two looks.
pub(super) struct Interrupts(Signal);

impl Interrupts {
    /// Begins to listen.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn of_terminal() -> Result<Self, Failure> {
        let signal = signal(SignalKind::interrupt());
        signal.map(Self).map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // No signal can come any more.
            std::future::pending::<()>().await;
        }
    }
}

/// The message of an argument.
///
/// # Errors
/// It holds nothing.
pub(super) fn message(text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty")
            .remedy("pass a text with --message TEXT, or leave --message out for a conversation"));
    }
    Ok(text.to_owned())
}

/// All of standard input, as one message.
///
/// # Errors
/// It cannot be read, is not UTF-8, or holds nothing.
pub(super) fn whole_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    if text.trim().is_empty() {
        return Err(Failure::usage("standard input holds no message")
            .remedy("pass it with --message TEXT, or run `nylorun chat AGENT` on a terminal"));
    }
    // The last line's end is the shell's, not the message's.
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_messages_and_what_only_looks_like_one() {
        for (line, expected) in [
            ("", Typed::Nothing),
            ("  \t", Typed::Nothing),
            ("hello ", Typed::Message("hello ")),
            (" /help ", Typed::Help),
            ("/quit", Typed::Quit),
            ("/steer  use the other one ", Typed::When(WhenBusy::Steer, "use the other one")),
            ("/queue x", Typed::When(WhenBusy::Queue, "x")),
            ("/steer", Typed::Unknown("/steer")),
            ("/exit", Typed::Quit),
            ("/", Typed::Unknown("/")),
            ("/hepl me", Typed::Unknown("/hepl")),
            ("/quit now", Typed::Unknown("/quit")),
            ("//help", Typed::Message("/help")),
            ("// a comment", Typed::Message("/ a comment")),
            ("/workspace/a.txt is broken", Typed::Message("/workspace/a.txt is broken")),
            ("what is /help?", Typed::Message("what is /help?")),
        ] {
            assert_eq!(Typed::read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_message_says_something() {
        assert_eq!(message("hi ").unwrap(), "hi ");
        assert_eq!(message(" \n").unwrap_err().exit.number(), 2);
    }
}
