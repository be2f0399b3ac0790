//! What the person types.

use std::io::{self, BufRead as _, Read as _};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::super::failure::Failure;

/// What may be typed at the prompt besides messages.
pub(super) const HELP: &str = "\
/help     this list
/quit     leave; so do /exit and the end of input (Ctrl-D). The session stays: --session ID goes on with it
//TEXT    send a message that begins with one /
Ctrl-C    cancel the turn that runs; a second one leaves
";

/// A line that was typed at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// Nothing to send.
    Nothing,
    /// A message.
    Message(&'a str),
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
        match trimmed {
            "/help" => Self::Help,
            "/quit" | "/exit" => Self::Quit,
            _ if is_command => Self::Unknown(first),
            _ => Self::Message(line),
        }
    }
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
