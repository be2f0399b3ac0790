//! `nylorun usage`

use clap::{Args, ValueEnum};
use nylorun_client::{TenantUsage, UsageQuery};

use super::budget::Scope;
use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::visible;

/// `nylorun usage`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun usage --period month
  nylorun usage --scope agent --id support --period day
  nylorun usage --scope turn --id TURN
  nylorun usage --json | jq .costUsd

Days and months are those of UTC. Calls whose price is not known cost nothing here; their tokens count.")]
pub(crate) struct UsageArgs {
    /// Whose calls
    #[arg(long, value_enum, default_value_t = Scope::Tenant)]
    scope: Scope,
    /// The agent, or the turn
    #[arg(long, value_name = "ID", required_if_eq_any([("scope", "agent"), ("scope", "turn")]))]
    id: Option<String>,
    /// Since the beginning of this day or month, or ever
    #[arg(long, value_enum, default_value_t = Period::Total)]
    period: Period,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Which time is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Period {
    /// This day
    Day,
    /// This month
    Month,
    /// Ever
    Total,
}

impl Period {
    fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Total => "total",
        }
    }
}

/// Says it.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(args: UsageArgs) -> Result<(), Failure> {
    let query = UsageQuery {
        scope: Some(args.scope.as_str().to_owned()),
        id: args.id,
        period: Some(args.period.as_str().to_owned()),
    };
    let usage = args.connect.connection()?.tenant()?.usage(&query).await?;
    args.output.print(&usage, told)
}

fn told(usage: &TenantUsage) -> String {
    let whose = match &usage.id {
        Some(id) => format!("{} {}", usage.scope, visible(id)),
        None => usage.scope.clone(),
    };
    let since = usage.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    let TenantUsage { calls, tokens, cost_usd, .. } = usage;
    format!("{whose}{since}\ncalls:  {calls}\ntokens: {tokens}\ncost:   {cost_usd} USD\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_stands_line_by_line() {
        let usage = json!({"scope": "agent", "id": "a\u{1b}", "period": "day", "since": "2026-11-30T00:00:00.000Z",
            "calls": 3, "tokens": 1234, "costUsd": 0.0125});
        let usage: TenantUsage = serde_json::from_value(usage).unwrap();
        let expected = "agent a␛ since 2026-11-30T00:00:00.000Z\ncalls:  3\ntokens: 1234\ncost:   0.0125 USD\n";
        assert_eq!(told(&usage), expected);
    }
}
