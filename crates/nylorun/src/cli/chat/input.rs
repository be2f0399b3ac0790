//! What the person types.

use std::io::{self, BufRead as _, Read as _};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::super::failure::Failure;

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
