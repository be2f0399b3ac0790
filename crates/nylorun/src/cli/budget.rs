//! `nylorun budget`

use clap::{Args, Subcommand, ValueEnum};
use nylorun_client::Budget;
use serde::Serialize;

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::{Style, one_line, table, visible};

/// `nylorun budget`
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// Set a budget, in the place of the one of its scope
    Set(SetArgs),
    /// List the budgets
    List(ListArgs),
    /// Remove a budget
    Rm(RmArgs),
}

/// `nylorun budget set`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun budget set tenant --period month --usd 100
  nylorun budget set agent --id support --period day --usd 5 --tokens 2000000
  nylorun budget set turn --usd 0.50

A budget is looked at before each model call. When it is used up, the call is not made and its turn fails with \
model.budget_exhausted. Days and months are those of UTC.")]
pub(crate) struct SetArgs {
    #[command(flatten)]
    target: Target,
    /// The time after which it begins anew, for tenant and agent
    #[arg(long, value_enum, required_if_eq_any([("scope", "tenant"), ("scope", "agent")]))]
    period: Option<Period>,
    /// US dollars
    #[arg(
        long,
        value_name = "AMOUNT",
        value_parser = amount,
        allow_negative_numbers = true,
        required_unless_present = "tokens"
    )]
    usd: Option<f64>,
    /// Tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tokens: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun budget list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun budget list
  nylorun budget list --json | jq '.[].limitUsd'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun budget rm`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun budget rm tenant
  nylorun budget rm agent --id support")]
pub(crate) struct RmArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What a budget is for.
#[derive(Debug, Args)]
struct Target {
    /// What it is for
    #[arg(value_enum)]
    scope: Scope,
    /// The agent, for scope agent
    #[arg(long, value_name = "AGENT", required_if_eq("scope", "agent"))]
    id: Option<String>,
}

/// Whose calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// All calls
    Tenant,
    /// Turns of one agent
    Agent,
    /// One turn
    Turn,
}

/// The time after which a budget begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Period {
    /// A day, UTC
    Day,
    /// A calendar month, UTC
    Month,
}

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Turn => "turn",
        }
    }
}

impl Target {
    /// Whether this is the budget's scope and id.
    fn is_of(&self, budget: &Budget) -> bool {
        budget.scope == self.scope.as_str() && budget.id == self.id
    }

    fn name(&self) -> String {
        match &self.id {
            Some(id) => format!("{} {}", self.scope.as_str(), visible(id)),
            None => self.scope.as_str().to_owned(),
        }
    }
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: BudgetCommand) -> Result<(), Failure> {
    match command {
        BudgetCommand::Set(args) => set(args).await,
        BudgetCommand::List(args) => list(args).await,
        BudgetCommand::Rm(args) => rm(args).await,
    }
}

async fn set(args: SetArgs) -> Result<(), Failure> {
    let tenant = args.connect.connection()?.tenant()?;
    let mut budgets = tenant.budgets().await?;
    budgets.retain(|budget| !args.target.is_of(budget));
    let period = args.period.map(|period| match period {
        Period::Day => "day".to_owned(),
        Period::Month => "month".to_owned(),
    });
    budgets.push(Budget {
        scope: args.target.scope.as_str().to_owned(),
        id: args.target.id,
        period,
        limit_usd: args.usd,
        limit_tokens: args.tokens,
    });
    let budgets = tenant.set_budgets(&budgets).await?;
    args.output.print(&budgets, |budgets| told(budgets, &Style::of_stdout()))
}

/// A sum of money that JSON can carry.
fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "expected an amount of US dollars above 0, such as 12.50".to_owned())
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let budgets = args.connect.connection()?.tenant()?.budgets().await?;
    args.output.print(&budgets, |budgets| told(budgets, &Style::of_stdout()))
}

/// What was removed, for programs.
#[derive(Serialize)]
struct Removed {
    scope: &'static str,
    id: Option<String>,
    deleted: bool,
}

async fn rm(args: RmArgs) -> Result<(), Failure> {
    let tenant = args.connect.connection()?.tenant()?;
    let mut budgets = tenant.budgets().await?;
    let before = budgets.len();
    budgets.retain(|budget| !args.target.is_of(budget));
    if budgets.len() == before {
        let failure = Failure::new(format!("there is no budget for {}", args.target.name()));
        return Err(failure.remedy("`nylorun budget list` lists those that there are"));
    }
    tenant.set_budgets(&budgets).await?;
    let name = args.target.name();
    let removed = Removed { scope: args.target.scope.as_str(), id: args.target.id, deleted: true };
    args.output.print(&removed, |_| format!("removed the budget for {name}\n"))
}

fn told(budgets: &[Budget], style: &Style) -> String {
    if budgets.is_empty() {
        return "no budgets: model calls are not limited (`nylorun budget set`)\n".to_owned();
    }
    let text = |text: &Option<String>, width| text.as_deref().map(|text| one_line(text, width)).unwrap_or_default();
    let rows: Vec<[String; 5]> = budgets
        .iter()
        .map(|budget| {
            let usd = budget.limit_usd.map(|usd| usd.to_string()).unwrap_or_default();
            let tokens = budget.limit_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
            [one_line(&budget.scope, 20), text(&budget.id, 60), text(&budget.period, 20), usd, tokens]
        })
        .collect();
    table(["SCOPE", "ID", "EACH", "USD", "TOKENS"], &rows, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(scope: &str, id: Option<&str>, period: Option<&str>) -> Budget {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (id, period) = (text(id), text(period));
        Budget { scope: scope.to_owned(), id, period, limit_usd: Some(0.5), limit_tokens: None }
    }

    #[test]
    fn budgets_stand_in_columns() {
        let budgets = [
            budget("tenant", None, Some("month")),
            Budget { limit_usd: None, limit_tokens: Some(20), ..budget("agent", Some("a"), Some("day")) },
            budget("turn", None, None),
        ];
        let expected = "\
SCOPE   ID  EACH   USD  TOKENS
tenant      month  0.5
agent   a   day         20
turn               0.5
";
        assert_eq!(told(&budgets, &Style::plain()), expected);
        assert!(told(&[], &Style::plain()).starts_with("no budgets"));
    }

    #[test]
    fn an_amount_is_a_number_above_0() {
        assert_eq!(["0.5", "100", "1e2"].map(|text| amount(text).ok()), [Some(0.5), Some(100.0), Some(100.0)]);
        for wrong in ["NaN", "inf", "-inf", "-1", "0", "1e999", "", "5 USD"] {
            assert!(amount(wrong).unwrap_err().contains("above 0"), "{wrong:?}");
        }
    }

    #[test]
    fn a_budget_is_found_by_scope_and_id() {
        let target = |scope, id: Option<&str>| Target { scope, id: id.map(str::to_owned) };
        let agents = budget("agent", Some("a"), Some("day"));
        assert!(target(Scope::Agent, Some("a")).is_of(&agents));
        assert!(!target(Scope::Agent, Some("b")).is_of(&agents) && !target(Scope::Tenant, None).is_of(&agents));
    }
}
