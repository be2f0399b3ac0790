//! `nylorun retention`

use clap::{Args, Subcommand};
use nylorun_client::Retention;
use nylorun_domain::retention::Keep;

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;

/// `nylorun retention`
#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Say how long what is kept
    Show(ShowArgs),
    /// Set how long idle sessions, old events or both are kept
    Set(SetArgs),
}

/// `nylorun retention show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun retention show
  nylorun retention show --json")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun retention set`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun retention set --sessions 90d --events 30d
  nylorun retention set --events off

A time is a whole number and ms, s, m, h or d; `off` keeps for ever. What is not named stays as it is. Nothing of a \
session whose turn is active, waits or is paused is removed. What was removed cannot be brought back.")]
pub(crate) struct SetArgs {
    /// Remove sessions, whole, in which nothing happened for so long
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "events")]
    sessions: Option<String>,
    /// Remove events that are so old; their sessions stay
    #[arg(long, value_name = "TIME", value_parser = time)]
    events: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: RetentionCommand) -> Result<(), Failure> {
    match command {
        RetentionCommand::Show(args) => show(args).await,
        RetentionCommand::Set(args) => set(args).await,
    }
}

async fn show(args: ShowArgs) -> Result<(), Failure> {
    let retention = args.connect.connection()?.tenant()?.retention().await?;
    args.output.print(&retention, told)
}

async fn set(args: SetArgs) -> Result<(), Failure> {
    let tenant = args.connect.connection()?.tenant()?;
    let now = tenant.retention().await?;
    let asked = Retention { sessions: changed(now.sessions, args.sessions), events: changed(now.events, args.events) };
    let retention = tenant.set_retention(&asked).await?;
    args.output.print(&retention, told)
}

/// A time as it is sent, or `off`.
fn time(text: &str) -> Result<String, String> {
    match Keep::parse(text) {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(_) if text == "off" => Ok(text.to_owned()),
        Err(_) => Err("expected a whole number above 0 and ms, s, m, h or d, such as 90d; or off".to_owned()),
    }
}

/// What a time becomes: `off` ends it, and no word leaves it.
fn changed(now: Option<String>, asked: Option<String>) -> Option<String> {
    match asked {
        None => now,
        Some(word) if word == "off" => None,
        Some(time) => Some(time),
    }
}

fn told(retention: &Retention) -> String {
    let kept = |time: &Option<String>| time.clone().unwrap_or_else(|| "for ever".to_owned());
    format!("idle sessions  {}\nevents         {}\n", kept(&retention.sessions), kept(&retention.events))
}

#[cfg(test)]
mod tests {
    use super::{Retention, changed, time, told};

    #[test]
    fn a_time_is_a_number_with_its_unit_or_off() {
        for (text, read) in [
            ("90d", Some("90d")),
            (" 36h ", Some("36h")),
            ("off", Some("off")),
            ("5w", None),
            ("0d", None),
            ("", None),
            ("d", None),
        ] {
            assert_eq!(time(text).ok().as_deref(), read, "{text:?}");
        }
    }

    #[test]
    fn off_ends_a_time_and_no_word_leaves_it() {
        let now = || Some("90d".to_owned());
        assert_eq!(changed(now(), None), now());
        assert_eq!(changed(now(), Some("off".to_owned())), None);
        assert_eq!(changed(None, now()), now());
        let retention = Retention { sessions: now(), events: None };
        assert_eq!(told(&retention), "idle sessions  90d\nevents         for ever\n");
    }
}
