//! Where the session's server is: found again when it moved, and given up when it stays away for too long.

use std::time::Duration;

use nylorun_client::Client;

use super::super::connect::{ConnectArgs, Connection};
use super::super::failure::Failure;
use super::super::term::duration;

/// How to reach the server.
pub(super) struct Reach {
    connect: ConnectArgs,
    /// Where it was found last.
    url: String,
    agent: String,
    /// How long it may stay away; for ever where somebody sits there who can leave.
    patience: Option<Duration>,
}

impl Reach {
    pub(super) fn new(connect: ConnectArgs, found: &Connection, agent: &str, patience: Option<Duration>) -> Self {
        Self { connect, url: found.url.clone(), agent: agent.to_owned(), patience }
    }

    /// A client for where the server is now, when what told of it tells of another place by now: a server that starts
    /// again may listen on another port.
    pub(super) fn moved(&mut self) -> Option<Client> {
        // What cannot be read now may be about to be written.
        let found = self.connect.connection().ok().filter(|found| found.url != self.url)?;
        let client = found.client().ok()?;
        self.url = found.url;
        Some(client)
    }

    /// Gives up on a server that has stayed away for so long.
    ///
    /// # Errors
    /// It has stayed away for too long; the command that goes on with the session is named.
    pub(super) fn wait_on(&self, session: &str, away: Duration, cause: &str) -> Result<(), Failure> {
        match self.patience {
            Some(patience) if away >= patience => Err(self.gave_up(session, away, cause)),
            Some(_) | None => Ok(()),
        }
    }

    fn gave_up(&self, session: &str, away: Duration, cause: &str) -> Failure {
        Failure::not_running(format!("the server has not answered for {}: {cause}", duration(away))).remedy(format!(
            "start it with `nylorun start`; `nylorun chat {} --session {session}` goes on with what runs",
            self.agent
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_a_patience_loses_it() {
        let reach =
            |patience| Reach { connect: ConnectArgs::default(), url: String::new(), agent: "a".into(), patience };
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert!(reach(None).wait_on("s", hour, "refused").is_ok());
        assert!(reach(Some(hour)).wait_on("s", minute, "refused").is_ok());
        let given_up = reach(Some(minute)).wait_on("s", minute, "refused").unwrap_err();
        assert_eq!(given_up.exit.number(), 3);
        assert!(given_up.to_string().ends_with(": refused"), "{given_up}");
        assert!(given_up.advice().unwrap().contains("`nylorun chat a --session s`"));
    }
}
