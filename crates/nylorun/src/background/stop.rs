//! `nylorun stop`: asks the server of a home directory to stop, and waits until it is gone.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::term::{Style, Tone, duration, visible};
use crate::cli::{Failure, StopArgs};
use crate::home::{Home, LastStop, Occupant, Process};

/// How often to look whether it is gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// When to say what it waits for.
const LONG: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stopped {
    /// The home directory that it served.
    home: PathBuf,
    /// Where it listened, when it had said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    pid: u32,
    took_ms: u64,
    /// How it left its turns; absent when it ended without saying so.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Turns>,
}

#[derive(Clone, Copy, Serialize)]
struct Turns {
    running: u64,
    left: u64,
}

/// Stops it.
///
/// # Errors
/// Nothing runs there (exit code 3), or its process cannot be told from others or asked.
pub(crate) fn run(args: StopArgs) -> Result<(), Failure> {
    let home = Home::existing(&args.home.directory()?)?;
    let shown = home.path().display();
    let idle = || {
        Failure::not_running(format!("no server runs on the home directory {shown}")).remedy("`nylorun start` runs one")
    };
    let (pid, url) = match home.occupant()? {
        Occupant::Nobody => return Err(idle()),
        Occupant::Server(host) => (host.pid, Some(host.url)),
        Occupant::Busy { pid: Some(pid) } => (pid, None),
        Occupant::Busy { pid: None } => {
            return Err(Failure::new(format!(
                "a process uses the home directory {shown} and has not said which it is"
            ))
            .remedy("try again in a moment"));
        }
    };
    let Some(process) = home.process(pid) else {
        return Err(match home.occupant()? {
            Occupant::Nobody => idle(),
            Occupant::Busy { .. } | Occupant::Server(_) => Failure::new(format!(
                "the home directory {shown} is in use by process {pid}, and no such process of yours is here"
            ))
            .remedy("it runs in a container, or as another user: stop it there"),
        });
    };
    process.terminate().map_err(|error| Failure::new(format!("cannot ask process {pid} to stop: {error}")))?;
    let took = wait(&process);
    let turns = home
        .last_stop(pid)?
        .map(|LastStop { turns_running, turns_left, .. }| Turns { running: turns_running, left: turns_left });
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let stopped = Stopped { home: home.path().to_owned(), url, pid, took_ms, turns };
    args.output.print(&stopped, |stopped| text(stopped, took))
}

fn wait(process: &Process) -> Duration {
    let begun = Instant::now();
    let mut is_told = false;
    while process.is_there() {
        if begun.elapsed() > LONG && !std::mem::replace(&mut is_told, true) {
            let text = "its turns come to rest: at most 30 s, or NYLORUN_STOP_GRACE of the server";
            // Nobody can be told when standard error is gone.
            let _ = writeln!(std::io::stderr(), "{}", Style::of_stderr().paint(Tone::Faint, text));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    begun.elapsed()
}

fn text(stopped: &Stopped, took: Duration) -> String {
    let turns = match stopped.turns {
        None => "it ended without saying how its turns are: the next start takes them up".to_owned(),
        Some(Turns { running: 0, left: 0 }) => "no turn ran".to_owned(),
        Some(Turns { running, left: 0 }) => format!("{} ended", counted(running)),
        Some(Turns { left: 1, .. }) => "1 turn goes on at the next start".to_owned(),
        Some(Turns { left, .. }) => format!("{left} turns go on at the next start"),
    };
    let mut text = format!("stopped process {} after {}; {turns}\n", stopped.pid, duration(took));
    text.push_str(&format!("home  {}\n", stopped.home.display()));
    if let Some(url) = &stopped.url {
        text.push_str(&format!("url   {url}\n"));
    }
    visible(&text)
}

fn counted(turns: u64) -> String {
    if turns == 1 { "the turn that ran".to_owned() } else { format!("all {turns} turns that ran") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_turns_is_told() {
        let told = |turns: Option<(u64, u64)>| {
            let turns = turns.map(|(running, left)| Turns { running, left });
            let (home, url) = (PathBuf::from("/h"), Some("http://127.0.0.1:4000".to_owned()));
            let told = text(&Stopped { home, url, pid: 7, took_ms: 12, turns }, Duration::from_millis(12));
            told.strip_suffix("home  /h\nurl   http://127.0.0.1:4000\n").expect("it says which it was").to_owned()
        };
        assert_eq!(told(Some((0, 0))), "stopped process 7 after 12 ms; no turn ran\n");
        assert_eq!(told(Some((1, 0))), "stopped process 7 after 12 ms; the turn that ran ended\n");
        assert_eq!(told(Some((3, 0))), "stopped process 7 after 12 ms; all 3 turns that ran ended\n");
        assert_eq!(told(Some((3, 1))), "stopped process 7 after 12 ms; 1 turn goes on at the next start\n");
        assert_eq!(told(Some((0, 2))), "stopped process 7 after 12 ms; 2 turns go on at the next start\n");
        assert!(told(None).contains("the next start takes them up"));
    }
}
