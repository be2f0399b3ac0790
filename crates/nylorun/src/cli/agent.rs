//! `nylorun agent`

use std::convert::Infallible;

use clap::{Args, Subcommand};
use nylorun_client::Agent;
use nylorun_domain::check::{Problem, Step};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use serde_json::Value;

use super::args::Source;
use super::connect::ConnectArgs;
use super::document;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::{Style, one_line, table, visible};

/// `nylorun agent`
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Save an agent's manifest; sessions that are open keep the one they began with
    Save(SaveArgs),
    /// List the saved agents
    List(ListArgs),
}

/// `nylorun agent save`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun agent save assistant.yaml
  nylorun agent save --implementation-version 1.4.0 assistant.json
  render-manifest | nylorun agent save -

A small manifest:
  manifestSchemaVersion: 5
  id: assistant
  capabilities:
    - id: main
      type: agent
      instructions:
        - You help with files.")]
pub(crate) struct SaveArgs {
    /// Manifest in JSON or YAML; - reads standard input
    #[arg(value_name = "FILE", value_parser = source)]
    file: Source,
    /// Your own version of the agent [default: NYLORUN_IMPLEMENTATION_VERSION, or dev]
    #[arg(long, value_name = "VERSION")]
    implementation_version: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun agent list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun agent list
  nylorun agent list --json | jq -r '.[].agentId'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

fn source(text: &str) -> Result<Source, Infallible> {
    Ok(Source::from(text))
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: AgentCommand) -> Result<(), Failure> {
    match command {
        AgentCommand::Save(args) => save(args).await,
        AgentCommand::List(args) => list(args).await,
    }
}

async fn save(args: SaveArgs) -> Result<(), Failure> {
    let manifest = document::read(&args.file, document::Kind::Manifest)?;
    let id = id_of(&manifest)?;
    let version = args.implementation_version.unwrap_or_else(version_of_environment);
    let client = args.connect.connection()?.client()?;
    let saved = client.save_agent(id, &manifest, &version).await?;
    args.output.print(&saved, |saved| {
        let (id, hash) = (visible(&saved.agent_id), one_line(&saved.manifest_hash, 12));
        format!("saved {id} (manifest {hash}, version {})\n", visible(&saved.implementation_version))
    })
}

/// The id under which a manifest is saved. One without is not sent, so that all that is wrong with it is told here.
fn id_of(manifest: &Value) -> Result<&str, Failure> {
    let id = manifest.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    id.ok_or_else(|| {
        let document = Json::parse(&manifest.to_string()).map(|document| AgentManifest::check_saved(&document));
        let problems = match document {
            Ok(Err(problems)) => {
                problems.iter().map(|problem| (problem_path(problem), problem.message.clone())).collect()
            }
            Ok(Ok(_)) | Err(_) => Vec::new(),
        };
        let failure = match problems {
            problems if problems.is_empty() => Failure::new("the manifest has no `id`"),
            problems => Failure::problems("the manifest has", problems),
        };
        failure.remedy("give it an id, in a line such as `id: assistant`")
    })
}

/// Its path as refusals of the server have it.
fn problem_path(problem: &Problem) -> String {
    let path = problem.path.iter().map(|step| match step {
        Step::Name(name) => Value::String(name.clone()),
        Step::Index(at) => Value::from(*at),
    });
    nylorun_client::Problem { code: String::new(), path: path.collect(), message: String::new() }.path_text()
}

fn version_of_environment() -> String {
    let set = std::env::var("NYLORUN_IMPLEMENTATION_VERSION").ok().filter(|version| !version.is_empty());
    set.unwrap_or_else(|| "dev".to_owned())
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let agents = args.connect.connection()?.client()?.agents().await?;
    args.output.print(&agents, |agents| {
        if agents.is_empty() {
            return "no agents yet: save one with `nylorun agent save FILE`\n".to_owned();
        }
        let rows: Vec<[String; 5]> = agents.iter().map(row).collect();
        table(["AGENT", "NAME", "VERSION", "MANIFEST", "DESCRIPTION"], &rows, &Style::of_stdout())
    })
}

fn row(agent: &Agent) -> [String; 5] {
    [
        one_line(&agent.agent_id, 60),
        one_line(agent.name().unwrap_or_default(), 30),
        one_line(agent.implementation_version.as_deref().unwrap_or_default(), 20),
        one_line(agent.manifest_hash.as_deref().unwrap_or_default(), 12),
        one_line(agent.description().unwrap_or_default(), 60),
    ]
}
