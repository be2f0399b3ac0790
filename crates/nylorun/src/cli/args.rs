//! Arguments of the commands that are jobs of their own: the server, the demo, the database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::home::HomeArgs;

/// `nylorun serve`
#[derive(Debug, Args)]
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
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Services to run, by commas. Hidden while everything runs in one process.
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide = true)]
    pub(crate) service: Vec<String>,
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

/// `nylorun internal-shell`: the child process of a virtual workspace. Its words are the workspace crate's own.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Passed on as they are.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// `nylorun migrate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun migrate
  nylorun migrate --home /srv/nylorun

Works on the SQLite file in the home directory, or on the database that NYLORUN_DATABASE_URL names. `nylorun serve` \
does the same when it starts.")]
pub(crate) struct MigrateArgs {
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
