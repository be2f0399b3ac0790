//! Arguments of the commands that are jobs of their own: the server, the demo, the database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::home::HomeArgs;
use super::output::OutputArgs;

/// Where to listen.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "give an IP address and a port, such as 127.0.0.1:4000 or [::1]:4000")
}

/// How many lines.
fn count(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "give a whole number, such as 100")
}

/// `nylorun serve`
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  nylorun serve
  nylorun serve --listen 127.0.0.1:0           a free port; the line it prints says which
  nylorun serve --home /srv/nylorun
  NYLORUN_ALLOWED_HOSTS=agents.example.com nylorun serve --listen 0.0.0.0:4000

It prints one line with its URL when it is ready, and logs to standard error. SIGTERM lets turns come to rest and \
exits 0. The home directory holds the database, the workspaces and the keys; it is made when it is missing. Other \
settings are variables of the environment, such as NYLORUN_DATABASE_URL and NYLORUN_LOG: see docs/operations.md.")]
pub(crate) struct ServeArgs {
    /// The home directory.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Address and port; port 0 picks a free one [default: 127.0.0.1:4000]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Services to run, by commas. Hidden while everything runs in one process.
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide = true)]
    pub(crate) service: Vec<String>,
    /// How `nylorun start` runs it: apart from the terminal, with its log in the home directory.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}

/// Where a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the terminal that started it.
    Foreground,
    /// Apart from it.
    Background,
}

impl ServeArgs {
    /// The argument that asks for [`Place::Background`].
    pub(crate) const BACKGROUND: &'static str = "--background";

    /// Where it runs.
    pub(crate) fn place(&self) -> Place {
        if self.background { Place::Background } else { Place::Foreground }
    }
}

/// `nylorun start`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun start
  nylorun start --home ./data --listen 127.0.0.1:0
  nylorun status
  nylorun logs --follow
  nylorun stop

It runs `nylorun serve` apart from the terminal and waits until it is ready. Settings are those of `serve`. The log is \
logs/nylorun.log in the home directory. In the current directory it writes .nylorun/link.json and \
.nylorun/credentials.json, by which commands and client libraries in this directory find the server; a .gitignore \
there keeps the keys out of commits. When the server runs already, it says so.

Exit code 1: the server did not become ready; the end of its log is shown. Exit code 2: a setting cannot be used, as \
`serve` says it.")]
pub(crate) struct StartArgs {
    /// The home directory.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Address and port; port 0 picks a free one [default: 127.0.0.1:4000]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// How it is told.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `nylorun stop`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun stop
  nylorun stop --home /srv/nylorun

Turns get time to come to rest (30 s, or NYLORUN_STOP_GRACE of the server); those that have not ended go on at the \
next start. It waits until the server is gone, and says how many turns there were. A server in the foreground is \
stopped too.

Exit code 3: nothing runs there.")]
pub(crate) struct StopArgs {
    /// The home directory.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How it is told.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `nylorun logs`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun logs
  nylorun logs --follow
  nylorun logs --lines 1000 | grep WARN

The log of the server that `nylorun start` runs. One in the foreground logs to its standard error.

Exit code 3: no server was started in the background.")]
pub(crate) struct LogsArgs {
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// How many of the last lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = count)]
    pub(crate) lines: usize,
    /// The home directory.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// `nylorun demo`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun demo
  nylorun demo --model fixture/fixture                    the built-in fixture model, without key and network
  nylorun demo --model anthropic/claude-sonnet-5-5        the key comes from ANTHROPIC_API_KEY
  nylorun demo --model custom/llama3.2 --base-url http://127.0.0.1:11434/v1

It works in a temporary home directory that is removed afterwards: nothing of yours is changed.")]
pub(crate) struct DemoArgs {
    /// Model to use [default: anthropic/claude-sonnet-5-5 when ANTHROPIC_API_KEY is set, else the built-in fixture]
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Endpoint of a `custom` model, usually ending in /v1
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// Environment variable that holds the provider's key [default: the usual one, such as ANTHROPIC_API_KEY]
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) key_env: Option<String>,
}

/// `nylorun migrate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun migrate
  nylorun migrate --check && nylorun serve
  nylorun migrate --home /srv/nylorun

Works on the SQLite file in the home directory, or on the database that NYLORUN_DATABASE_URL names. `nylorun serve` \
does the same when it starts.

Exit code 1 with --check: the database is older than this version, or newer.")]
pub(crate) struct MigrateArgs {
    /// Change nothing, and say whether there is something to do
    #[arg(long)]
    pub(crate) check: bool,
    /// The home directory.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// `nylorun openapi`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun openapi > runtime.json
  nylorun openapi management > management.json")]
pub(crate) struct OpenapiArgs {
    /// Which document
    #[arg(value_enum, default_value_t = OpenapiDocument::Runtime)]
    pub(crate) document: OpenapiDocument,
}

/// The two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpenapiDocument {
    /// Agents, sessions, events
    Runtime,
    /// The tenant's settings
    Management,
}

/// `PROVIDER/MODEL`; the model's name may hold slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelName {
    /// The provider's id.
    pub(crate) provider: String,
    /// The provider's name of the model.
    pub(crate) model: String,
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            Some(_) | None => Err("write PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5".to_owned()),
        }
    }
}

impl ModelName {
    /// The environment variable that usually holds a provider's key; `None` where there is no usual one.
    pub(crate) fn usual_key_variable(&self) -> Option<&'static str> {
        match self.provider.as_str() {
            "anthropic" => Some("ANTHROPIC_API_KEY"),
            "openai" => Some("OPENAI_API_KEY"),
            "google" => Some("GEMINI_API_KEY"),
            "openrouter" => Some("OPENROUTER_API_KEY"),
            "azure" => Some("AZURE_OPENAI_API_KEY"),
            _ => None,
        }
    }
}

/// A file, or `-` for standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        if text == "-" { Self::Stdin } else { Self::File(PathBuf::from(text)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_may_hold_slashes() {
        let name: ModelName = "openrouter/meta/llama-3".parse().unwrap();
        assert_eq!((name.provider.as_str(), name.model.as_str()), ("openrouter", "meta/llama-3"));
        for text in ["gpt", "/x", "x/", ""] {
            assert!(text.parse::<ModelName>().is_err(), "{text}");
        }
    }
}
