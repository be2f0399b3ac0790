//! `nylorun reset`

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use nylorun_client::{ActiveWork, Counts, ResetScope};
use serde_json::{Value, json};

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;

/// `nylorun reset`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun reset --sessions                       asks before it removes anything
  nylorun reset --sandboxes --yes
  nylorun reset --all --cancel --yes             does not wait for turns that run

What is removed is gone for good. Agents, their definition files, keys, the model and the settings stay, and so does \
the account of model calls. Without --cancel it waits up to 30 seconds for work that runs, and removes nothing when \
that does not end. One that was interrupted is simply run again.")]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    what: What,
    /// Cancel turns and tool calls that run, instead of waiting for them
    #[arg(long)]
    cancel: bool,
    /// Remove without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What to remove.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// All sessions with their records and their workspaces
    #[arg(long)]
    sessions: bool,
    /// All workspaces with their files; sessions stay
    #[arg(long)]
    sandboxes: bool,
    /// Both
    #[arg(long)]
    all: bool,
}

impl What {
    fn scope(&self) -> ResetScope {
        if self.all {
            ResetScope::All
        } else if self.sandboxes {
            ResetScope::Sandboxes
        } else {
            ResetScope::Sessions
        }
    }
}

/// Asks, then resets.
///
/// # Errors
/// Nobody agreed, work did not end, or as every command that talks to a server.
pub(crate) async fn run(args: ResetArgs) -> Result<(), Failure> {
    let connection = args.connect.connection()?;
    let tenant = connection.tenant()?;
    let scope = args.what.scope();
    let status = tenant.status().await?;
    let retained = status.sandbox.as_ref().and_then(|sandbox| sandbox.get("retained")).and_then(Value::as_u64);
    let what = named(scope, &status.counts, retained.unwrap_or_default());
    if !args.yes {
        agree(&format!("This removes {what} of {} for good.", connection.url))?;
    }
    let active_work = if args.cancel { ActiveWork::Cancel } else { ActiveWork::Drain };
    tenant.reset(scope, active_work).await?;
    args.output.print(&json!({"ok": true}), |_| format!("removed {what}\n"))
}

/// What is about to be removed, in words.
fn named(scope: ResetScope, counts: &Counts, workspaces: u64) -> String {
    let sessions = plural(counts.sessions, "session");
    let workspaces = plural(workspaces, "workspace");
    match scope {
        ResetScope::Sessions => format!("{sessions} with their records and workspaces"),
        ResetScope::Sandboxes => format!("{workspaces} with their files"),
        ResetScope::All => format!("{sessions} with their records, and {workspaces} with their files"),
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Asks at the terminal. Where nobody can be asked, nothing is removed.
fn agree(question: &str) -> Result<(), Failure> {
    let refused = || Failure::usage("nothing was removed").remedy("add --yes to remove without being asked");
    if !io::stdin().is_terminal() {
        return Err(refused().lines(vec![question.to_owned()]));
    }
    let mut err = io::stderr().lock();
    write!(err, "{question} Type yes to go on: ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Failure::new("nothing was removed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_would_be_gone() {
        let counts: Counts = serde_json::from_value(json!({"sessions": 1})).unwrap();
        assert_eq!(named(ResetScope::Sessions, &counts, 3), "1 session with their records and workspaces");
        assert_eq!(named(ResetScope::Sandboxes, &counts, 3), "3 workspaces with their files");
        let all = "1 session with their records, and 0 workspaces with their files";
        assert_eq!(named(ResetScope::All, &counts, 0), all);
    }
}
