//! `nylorun doctor`: looks for what is missing, and says what to do.

mod home;
mod server;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::{Style, Tone, visible};

/// `nylorun doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun doctor
  nylorun doctor sandbox
  nylorun doctor --json | jq '.[] | select(.verdict != \"ok\")'

Looks at the home directory, at the secrets in its database and at the server, and says what to do about what it \
finds. It changes nothing. Exit code 1: something is wrong.")]
pub(crate) struct DoctorArgs {
    /// Look at one thing only
    #[arg(value_enum)]
    area: Option<Area>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What can be looked at alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Area {
    /// Which workspace backends work on the server's machine
    Sandbox,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Serialize)]
struct Check {
    name: String,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Ok, detail: detail.into(), remedy: None }
    }

    fn warn(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, remedy: Some(remedy.into()), ..Self::ok(name, detail) }
    }

    fn fail(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, remedy: Some(remedy.into()), ..Self::ok(name, detail) }
    }
}

/// Looks, and prints what it found.
///
/// # Errors
/// Something is wrong; it has been printed.
pub(crate) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let mut checks = Vec::new();
    match args.area {
        Some(Area::Sandbox) => checks.extend(server::sandbox(&args.connect).await),
        None => {
            let home = args.connect.home_directory()?;
            checks.extend(home::checks(&home));
            checks.extend(home::sealed(&home).await);
            checks.extend(server::checks(&args.connect).await);
        }
    }
    args.output.print(&checks, |checks| told(checks, &Style::of_stdout()))?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
    if failed { Err(Failure::told()) } else { Ok(()) }
}

fn told(checks: &[Check], style: &Style) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for check in checks {
        let (tone, mark) = match check.verdict {
            Verdict::Ok => (Tone::Good, "ok  "),
            Verdict::Warn => (Tone::Warn, "warn"),
            Verdict::Fail => (Tone::Bad, "fail"),
        };
        let name = visible(&check.name);
        text.push_str(&format!("{}  {name:width$}  {}\n", style.paint(tone, mark), visible(&check.detail)));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("      {:width$}  {}\n", "", style.paint(Tone::Accent, &visible(remedy))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_has_its_remedy_below() {
        let checks = [Check::ok("home", "/h"), Check::fail("model", "none chosen", "nylorun model set")];
        let expected = "ok    home   /h\nfail  model  none chosen\n             nylorun model set\n";
        assert_eq!(told(&checks, &Style::plain()), expected);
    }
}
