//! `nylorun key`: works on the home directory itself, so it needs no running server and no key.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::failure::Failure;
use super::home::HomeArgs;
use super::output::OutputArgs;
use super::term::{Style, ago, one_line, table};
use crate::local::{self, ListedKey, NewKey};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRole {
    /// Agents and sessions: the Runtime API.
    Application,
    /// The tenant's settings: the Management API.
    Management,
}

/// `nylorun key`
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key, or replace the one of that name at once; the value is shown this once
    Put(PutArgs),
    /// List the keys
    List(ListArgs),
    /// Remove a key; it dies at once
    Rm(RmArgs),
}

/// `nylorun key put`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun key put web
  nylorun key put ops --management
  nylorun key put web --json | jq -r .key > web.key

Clients send it as `Authorization: Bearer KEY`. The command line takes it from NYLORUN_SERVER_KEY or \
--application-key-file (a management key from NYLORUN_MANAGEMENT_KEY or --management-key-file).")]
pub(crate) struct PutArgs {
    /// Name of the key: a letter, then letters, digits and hyphens, all lower case, at most 32
    id: String,
    /// Make a key for the tenant's settings (model, keys) instead of one for agents and sessions
    #[arg(long)]
    management: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// `nylorun key list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun key list
  nylorun key list --json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// `nylorun key rm`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun key rm web")]
pub(crate) struct RmArgs {
    /// Name of the key
    id: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// Runs one of them.
///
/// # Errors
/// The name is wrong, or the home's database cannot be opened.
pub(crate) async fn run(command: KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::Put(args) => put(args).await,
        KeyCommand::List(args) => list(args).await,
        KeyCommand::Rm(args) => rm(args).await,
    }
}

/// As the Management API says it.
#[derive(Serialize)]
struct Removed {
    id: String,
    deleted: bool,
}

async fn rm(args: RmArgs) -> Result<(), Failure> {
    local::key_rm(&args.home.directory()?, &args.id).await?;
    let removed = Removed { id: args.id, deleted: true };
    args.output.print(&removed, |removed| format!("removed {}\n", one_line(&removed.id, 40)))
}

async fn put(args: PutArgs) -> Result<(), Failure> {
    let role = if args.management { KeyRole::Management } else { KeyRole::Application };
    let key = local::key_put(&args.home.directory()?, &args.id, role).await?;
    args.output.print(&key, told)
}

/// The value alone stands on its line, easy to copy; it is not shown again.
fn told(key: &NewKey) -> String {
    let replaced = if key.rotated { ", in the place of an older one" } else { "" };
    let NewKey { id, role, key, .. } = key;
    format!("{role} key {id}{replaced}. Keep it: it is not shown again.\n\n{key}\n")
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let keys = local::key_list(&args.home.directory()?).await?;
    args.output.print(&keys, |keys| {
        let now = SystemTime::now();
        let row = |key: &ListedKey| [one_line(&key.id, 40), key.role.clone(), ago(&key.created_at, now)];
        let rows: Vec<[String; 3]> = keys.iter().map(row).collect();
        table(["KEY", "ROLE", "MADE"], &rows, &Style::of_stdout())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_stands_alone_on_its_line() {
        let key = NewKey { id: "web".into(), role: "application", key: "0".repeat(64), rotated: true };
        let text = told(&key);
        assert_eq!(text.lines().last(), Some("0".repeat(64).as_str()));
        assert!(text.starts_with("application key web, in the place of an older one."));
    }
}
