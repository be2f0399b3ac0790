//! `nylorun secrets`: what the home directory's vault key sealed. Works on the home directory itself.

use clap::{Args, Subcommand};
use nylorun_keys::sealed::short;

use super::failure::Failure;
use super::home::HomeArgs;
use super::output::OutputArgs;
use super::term::{Style, one_line, table};
use crate::local::{self, ListedSecret};

/// `nylorun secrets`
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// List the sealed secrets, and whether the vault key opens them
    List(ListArgs),
    /// Remove the sealed secrets that the vault key does not open, for good
    Discard(DiscardArgs),
}

/// `nylorun secrets list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun secrets list
  nylorun secrets list --json

Secrets are sealed with keys/vault-kek of the home directory. Nothing here shows a secret. To compare a file with the \
column SEALED WITH: base64 -d keys/vault-kek | sha256sum")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// `nylorun secrets discard`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun secrets discard                        say what would be removed
  nylorun secrets discard --yes

For a home directory whose keys/vault-kek is lost for good: the server does not start while secrets are stored that \
its vault key does not open. First look for a backup of that file, or for another home directory that uses the same \
database. Afterwards start the server and give the keys again: `nylorun model set PROVIDER/MODEL`.")]
pub(crate) struct DiscardArgs {
    /// Remove them; without this, they are only listed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// Runs one of them.
///
/// # Errors
/// The home's database cannot be opened; for `discard`: a server runs on the home, or `--yes` is missing.
pub(crate) async fn run(command: SecretsCommand) -> Result<(), Failure> {
    match command {
        SecretsCommand::List(args) => list(args).await,
        SecretsCommand::Discard(args) => discard(args).await,
    }
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let secrets = local::secret_list(&args.home.directory()?).await?;
    args.output.print(&secrets, |secrets| {
        if secrets.is_empty() {
            return "no sealed secrets: `nylorun model set PROVIDER/MODEL` stores the first\n".to_owned();
        }
        told(secrets)
    })
}

async fn discard(args: DiscardArgs) -> Result<(), Failure> {
    let home = args.home.directory()?;
    if args.yes {
        let removed = local::secret_discard(&home).await?;
        return args.output.print(&removed, |removed| match removed.len() {
            0 => "nothing to remove: the vault key opens every sealed secret\n".to_owned(),
            _ => format!("removed for good:\n{}", told(removed)),
        });
    }
    let all = local::secret_list(&home).await?;
    let lost: Vec<ListedSecret> = all.into_iter().filter(|secret| !secret.opens).collect();
    args.output.print(&lost, |lost| match lost.len() {
        0 => "nothing to remove: the vault key opens every sealed secret\n".to_owned(),
        _ => format!("would be removed for good:\n{}", told(lost)),
    })?;
    if lost.is_empty() {
        return Ok(());
    }
    Err(Failure::usage("nothing was removed").remedy("add --yes to remove them"))
}

fn told(secrets: &[ListedSecret]) -> String {
    let row = |secret: &ListedSecret| {
        let opens = if secret.opens { "yes" } else { "no" };
        let secret_of = format!("key of {}", secret.provider);
        [one_line(&secret_of, 60), short(&secret.kek_id).to_owned(), opens.to_owned()]
    };
    let rows: Vec<[String; 3]> = secrets.iter().map(row).collect();
    table(["SECRET", "SEALED WITH", "OPENS"], &rows, &Style::of_stdout())
}
