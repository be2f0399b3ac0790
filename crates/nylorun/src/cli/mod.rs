//! The command line: what may be typed, and the commands that talk to a server.
//!
//! Each command has its arguments and its code in one file. They print data on standard output, and what went wrong
//! with its remedy on standard error.

mod agent;
mod args;
mod budget;
mod chat;
mod completions;
mod connect;
mod doctor;
mod document;
mod failure;
mod home;
mod key;
mod key_file;
mod model;
mod output;
mod project;
mod reset;
mod retention;
mod sandbox;
mod secrets;
mod session;
pub(crate) mod show;
mod status;
pub(crate) mod term;
mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use args::{
    DemoArgs, LogsArgs, MigrateArgs, ModelName, OpenapiArgs, OpenapiDocument, Place, ServeArgs, Source, StartArgs,
    StopArgs,
};
pub(crate) use document::{Kind as DocumentKind, read as read_document};
pub(crate) use failure::{Exit, Failure};
pub(crate) use home::{CredentialsFile, HomeArgs, HostFile, KeptFile, LinkFile, NamedKey, read as read_file};
pub(crate) use key::KeyRole;
pub(crate) use project::{Project, current_directory};

/// A self-hosted, durable runtime for AI agents.
#[derive(Debug, Parser)]
#[command(name = "nylorun", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Begin here:
  nylorun demo                                   a whole turn on this machine, without a model key
  nylorun start                                  the server, in the background
  nylorun model set anthropic/claude-sonnet-5-5  its model; the key comes from ANTHROPIC_API_KEY
  nylorun agent save assistant.yaml
  nylorun chat assistant

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not running or not enabled.";

/// Every command of the binary.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server in the foreground
    Serve(ServeArgs),
    /// Run the server in the background, and link this directory to it
    Start(StartArgs),
    /// Stop the server, and wait until it is gone
    Stop(StopArgs),
    /// Print the log of the server in the background
    Logs(LogsArgs),
    /// Show on this machine what it does: a turn with tools, printed as it happens
    Demo(DemoArgs),
    /// Bring the database to this version's schema
    Migrate(MigrateArgs),
    /// Print an OpenAPI document
    Openapi(OpenapiArgs),
    #[command(flatten)]
    Client(ClientCommand),
}

const AGENT_EXAMPLES: &str = "\
Examples:
  nylorun agent save assistant.yaml
  nylorun agent list
  nylorun chat assistant";

const SESSION_EXAMPLES: &str = "\
Examples:
  nylorun session list --status uncertain
  nylorun session show ID                        where it stands, and what it waits for
  nylorun session items ID                       as a conversation
  nylorun session cancel ID";

const KEY_EXAMPLES: &str = "\
Examples:
  nylorun key put web                            for your application's server
  nylorun key put ops --management               for the tenant's settings
  nylorun key list
  nylorun key rm web

A model provider's key is another thing: `nylorun model set`.";

const MODEL_EXAMPLES: &str = "\
Examples:
  nylorun model set anthropic/claude-sonnet-5-5  its key comes from ANTHROPIC_API_KEY
  nylorun model set custom/llama3.2 --base-url http://127.0.0.1:11434/v1
  nylorun model fixture                          try without a model
  nylorun model list";

const BUDGET_EXAMPLES: &str = "\
Examples:
  nylorun budget set tenant --period month --usd 100
  nylorun budget set agent --id support --period day --usd 5 --tokens 2000000
  nylorun budget set turn --usd 0.50
  nylorun budget list
  nylorun budget rm turn

What was spent: `nylorun usage`.";

const RETENTION_EXAMPLES: &str = "\
Examples:
  nylorun retention show
  nylorun retention set --sessions 90d --events 30d
  nylorun retention set --events off";

const SANDBOX_EXAMPLES: &str = "\
Examples:
  nylorun sandbox show
  nylorun sandbox set --default virtual          sessions get one unless they say no
  nylorun sandbox set --max-memory 4GiB --idle 5m";

const SECRETS_EXAMPLES: &str = "\
Examples:
  nylorun secrets list
  nylorun secrets discard --yes";

/// Commands that end when their answer is there.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Save and list agents
    #[command(subcommand, after_help = AGENT_EXAMPLES)]
    Agent(agent::AgentCommand),
    /// Talk to an agent
    Chat(chat::ChatArgs),
    /// Look at sessions, follow, cancel and settle them
    #[command(subcommand, after_help = SESSION_EXAMPLES)]
    Session(session::SessionCommand),
    /// Make, list and remove API keys, on the machine that holds the home directory
    #[command(subcommand, after_help = KEY_EXAMPLES)]
    Key(key::KeyCommand),
    /// Choose the model that all agents use
    #[command(subcommand, after_help = MODEL_EXAMPLES)]
    Model(model::ModelCommand),
    /// Say what model calls used and cost
    Usage(usage::UsageArgs),
    /// Limit what model calls may cost
    #[command(subcommand, after_help = BUDGET_EXAMPLES)]
    Budget(budget::BudgetCommand),
    /// List the sealed secrets, and discard those that cannot be opened any more
    #[command(subcommand, after_help = SECRETS_EXAMPLES)]
    Secrets(secrets::SecretsCommand),
    /// Remove sessions, workspaces or both
    Reset(reset::ResetArgs),
    /// Say and set how long idle sessions and old events are kept
    #[command(subcommand, after_help = RETENTION_EXAMPLES)]
    Retention(retention::RetentionCommand),
    /// Say and set which sandbox sessions get, and within which limits
    #[command(subcommand, after_help = SANDBOX_EXAMPLES)]
    Sandbox(sandbox::SandboxCommand),
    /// Say whether the server runs, and what is in it
    Status(status::StatusArgs),
    /// Look for what is missing, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Print a completion script
    Completions(completions::CompletionsArgs),
}

/// Runs a command that ends when its answer is there.
///
/// # Errors
/// Whatever went wrong, with its remedy and exit code.
pub(crate) fn run(command: ClientCommand) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start the asynchronous runtime: {error}")))?;
    let result = runtime.block_on(async {
        match command {
            ClientCommand::Agent(command) => agent::run(command).await,
            ClientCommand::Chat(args) => chat::run(args).await,
            ClientCommand::Session(command) => session::run(command).await,
            ClientCommand::Key(command) => key::run(command).await,
            ClientCommand::Model(command) => model::run(command).await,
            ClientCommand::Usage(args) => usage::run(args).await,
            ClientCommand::Budget(command) => budget::run(command).await,
            ClientCommand::Secrets(command) => secrets::run(command).await,
            ClientCommand::Reset(args) => reset::run(args).await,
            ClientCommand::Retention(command) => retention::run(command).await,
            ClientCommand::Sandbox(command) => sandbox::run(command).await,
            ClientCommand::Status(args) => status::run(args).await,
            ClientCommand::Doctor(args) => doctor::run(args).await,
            ClientCommand::Completions(args) => completions::run(args),
        }
    });
    // A thread that still reads standard input must not keep the process.
    runtime.shutdown_background();
    result
}

/// Prints what went wrong, if anything, and gives the exit code.
pub(crate) fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(&mut std::io::stderr(), &term::Style::of_stderr());
            failure.exit.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let inner: Vec<_> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
            for inner in &inner {
                check(inner, &format!("{path} {}", inner.get_name()));
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(path), "`{path}` has no example:\n{help}");
        }
        check(&Cli::command(), "nylorun");
    }
}
