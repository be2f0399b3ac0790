//! `nylorun model`

use std::io::{IsTerminal as _, Read as _};

use clap::{Args, Subcommand};
use nylorun_client::{ModelAuth, ModelChoice, ModelView, ProviderModels, ProviderView, Seed, SetModel, TenantClient};
use serde::Serialize;

use super::args::ModelName;
use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::{Style, Tone, one_line, table, visible};

/// `nylorun model`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Choose the tenant's model
    Set(SetArgs),
    /// Say which model is chosen, and list the catalogue
    List(ListArgs),
    /// Use the fixture model, which is deterministic and needs no network, where no model is chosen yet
    Fixture(FixtureArgs),
}

/// `nylorun model set`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun model set anthropic/claude-sonnet-5-5                  key from ANTHROPIC_API_KEY
  nylorun model set anthropic/claude-sonnet-5-5 --key-env MY_KEY
  pass show anthropic | nylorun model set anthropic/claude-sonnet-5-5 --key-stdin
  nylorun model set custom/llama3.2 --base-url http://127.0.0.1:11434/v1

Without a key anywhere, a provider that has one already keeps it, and a custom endpoint is called with none that \
means anything. A key is never an argument: other users of the machine can read those.")]
pub(crate) struct SetArgs {
    /// Provider and its name of the model
    #[arg(value_name = "PROVIDER/MODEL")]
    model: ModelName,
    /// Endpoint of a `custom` model (any OpenAI-compatible server), usually ending in /v1
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Read the provider's key from this environment variable
    #[arg(long, value_name = "NAME", conflicts_with = "key_stdin")]
    key_env: Option<String>,
    /// Read the provider's key from standard input
    #[arg(long)]
    key_stdin: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun model list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun model list
  nylorun model list --json | jq .current")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun model fixture`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun model fixture
  nylorun chat assistant --message '[{\"tools\":[{\"name\":\"bash\",\"input\":{\"command\":\"ls\"}}]}]'

It reads a JSON array of steps from the message and plays one a model call; any other message is echoed.")]
pub(crate) struct FixtureArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: ModelCommand) -> Result<(), Failure> {
    match command {
        ModelCommand::Set(args) => set(args).await,
        ModelCommand::List(args) => list(args).await,
        ModelCommand::Fixture(args) => fixture(args).await,
    }
}

async fn set(args: SetArgs) -> Result<(), Failure> {
    let key = given_key(&args)?;
    let tenant = args.connect.connection()?.tenant()?;
    let ModelName { provider, model } = args.model;
    let choice = ModelChoice { provider, model, base_url: args.base_url };
    let view = match key {
        Some(key) => tenant.set_model(&with_key(choice, key)).await?,
        None => set_without_key(&tenant, choice).await?,
    };
    args.output.print(&view, |view| format!("model: {}\n", current(view)))
}

fn with_key(choice: ModelChoice, key: String) -> SetModel {
    SetModel { choice, settings: None, auth: ModelAuth::ApiKey(key) }
}

/// The key that the arguments name, or that the provider's usual variable holds.
fn given_key(args: &SetArgs) -> Result<Option<String>, Failure> {
    let read = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
    if let Some(name) = &args.key_env {
        let unset = || Failure::usage(format!("the environment variable {name} is not set"));
        return read(name).map(Some).ok_or_else(unset);
    }
    if args.key_stdin {
        return key_of_stdin().map(Some);
    }
    Ok(args.model.usual_key_variable().and_then(read))
}

fn key_of_stdin() -> Result<String, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage("--key-stdin would show the key on this terminal")
            .remedy("pipe it in, as in `pass show KEY | nylorun model set …`, or use --key-env"));
    }
    let mut key = String::new();
    stdin.read_to_string(&mut key).map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    let key = key.trim().to_owned();
    if key.is_empty() { Err(Failure::usage("standard input holds no key")) } else { Ok(key) }
}

/// A provider that has a key keeps it; a custom endpoint may need none; for any other one a key is missing.
async fn set_without_key(tenant: &TenantClient, choice: ModelChoice) -> Result<ModelView, Failure> {
    let known = tenant.providers().await?.into_iter().any(|provider| provider.id == choice.provider);
    if known {
        return Ok(tenant.select_model(&choice).await?);
    }
    if choice.provider == "custom" {
        // The wire wants a key; local servers look at none.
        return Ok(tenant.set_model(&with_key(choice, "none".to_owned())).await?);
    }
    let name = ModelName { provider: choice.provider.clone(), model: choice.model };
    let variable = name.usual_key_variable().unwrap_or("NAME");
    Err(Failure::usage(format!("provider {} has no key yet", choice.provider))
        .remedy(format!("set {variable}, or pass --key-env NAME or --key-stdin")))
}

#[derive(Serialize)]
struct Listing {
    current: ModelView,
    providers: Vec<ProviderView>,
    catalogue: Vec<ProviderModels>,
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let tenant = args.connect.connection()?.tenant()?;
    let current = tenant.model().await?;
    let listing = Listing { current, providers: tenant.providers().await?, catalogue: tenant.models().await? };
    args.output.print(&listing, |listing| told(listing, &Style::of_stdout()))
}

fn told(listing: &Listing, style: &Style) -> String {
    let mut rows = Vec::new();
    for provider in &listing.catalogue {
        let keyed = listing.providers.iter().any(|known| known.id == provider.id);
        for model in &provider.models {
            let chosen = listing.current.provider.as_deref() == Some(&provider.id)
                && listing.current.model.as_deref() == Some(&model.id);
            rows.push([
                if chosen { "*" } else { "" }.to_owned(),
                one_line(&format!("{}/{}", provider.id, model.id), 60),
                if keyed { "yes" } else { "" }.to_owned(),
                one_line(&model.name, 50),
            ]);
        }
    }
    let heading = style.paint(Tone::Strong, &format!("model: {}", current(&listing.current)));
    let catalogue = if rows.is_empty() { String::new() } else { table(["", "MODEL", "KEY", "NAME"], &rows, style) };
    format!("{heading}\n\n{catalogue}\nAny OpenAI-compatible server: `nylorun model set custom/NAME --base-url URL`.\n")
}

/// The tenant's model on one line.
pub(crate) fn current(view: &ModelView) -> String {
    match (&view.provider, &view.model) {
        (Some(provider), Some(model)) if view.configured => {
            let at = view.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
            visible(&format!("{provider}/{model}{at}"))
        }
        _ if view.configured => "chosen".to_owned(),
        _ => "none chosen".to_owned(),
    }
}

async fn fixture(args: FixtureArgs) -> Result<(), Failure> {
    let answer = args.connect.connection()?.tenant()?.seed(&Seed::FixtureModel).await?;
    args.output.print(&answer, |answer| {
        if answer.applied.is_empty() {
            return "left as it was: the fixture model or another one is chosen already\n".to_owned();
        }
        "the fixture model answers from now on\n".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(current: &serde_json::Value) -> Listing {
        let models = json!([{"id": "m1", "name": "Model One"}, {"id": "m2", "name": "Model \u{1b}Two"}]);
        Listing {
            current: serde_json::from_value(current.clone()).unwrap(),
            providers: serde_json::from_value(json!([{"id": "p", "active": true}])).unwrap(),
            catalogue: serde_json::from_value(json!([{"id": "p", "name": "P", "models": models}])).unwrap(),
        }
    }

    #[test]
    fn the_chosen_model_is_marked() {
        let text = told(&listing(&json!({"configured": true, "provider": "p", "model": "m2"})), &Style::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..5],
            ["model: p/m2", "", "   MODEL  KEY  NAME", "   p/m1   yes  Model One", "*  p/m2   yes  Model ␛Two"]
        );
        assert!(told(&listing(&json!({"configured": false})), &Style::plain()).starts_with("model: none chosen\n"));
    }
}
