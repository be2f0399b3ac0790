//! `nylorun model set`

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::Args;
use nylorun_client::{ModelAuth, ModelChoice, ModelView, ProviderView, SetModel, TenantClient};
use serde_json::{Map, Value, json};

use super::super::args::ModelName;
use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::key_file;
use super::super::output::OutputArgs;
use super::super::term::visible;
use super::{FIXTURE, choose_fixture, current, told_fixture};

pub(super) const CUSTOM: &str = "custom";
/// The member of `settings.compat` that is false for an endpoint that is called without a key.
const REQUIRES_KEY: &str = "requiresKey";
const WAYS: &str = "--key-env NAME, --key-file FILE or --key-stdin";

/// `nylorun model set`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun model set anthropic/claude-sonnet-5-5                  key from ANTHROPIC_API_KEY
  nylorun model set anthropic/claude-sonnet-5-5 --key-env MY_KEY
  pass show anthropic | nylorun model set anthropic/claude-sonnet-5-5 --key-stdin
  nylorun model set custom/llama3.2 --base-url http://127.0.0.1:11434/v1

Without one of the --key options, the key comes from the provider's usual environment variable if that is set; else \
the key that is stored for the provider stays in use, and so does the stored --base-url of `custom`. A custom endpoint \
that has no key is called without. A key is never an argument: other users of the machine can read those.")]
pub(crate) struct SetArgs {
    /// Provider and model, as `nylorun model list` names them, or `custom` and the endpoint's name of the model
    #[arg(value_name = "PROVIDER/MODEL")]
    model: ModelName,
    /// Endpoint of a `custom` model (any OpenAI-compatible server), usually ending in /v1
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Where the provider's key is.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct KeyArgs {
    /// Read the provider's key from this environment variable
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Read the provider's key from this file
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Read the provider's key from standard input
    #[arg(long)]
    key_stdin: bool,
    /// The endpoint needs no key; a stored one is removed
    #[arg(long)]
    no_key: bool,
}

/// A key that was given now.
struct Given {
    key: String,
    /// Where it was, for people.
    from: String,
}

/// What the model is called with from now on.
#[derive(Debug, PartialEq, Eq)]
enum Credential {
    /// A key that was given, from here.
    Given { from: String, replaced: Replaced },
    /// The key that was stored before.
    Stored,
    /// None.
    None,
}

/// Whether a key was stored before.
#[derive(Debug, PartialEq, Eq)]
enum Replaced {
    Nothing,
    StoredKey,
}

/// Chooses the model, and says what it is called with.
///
/// # Errors
/// There is no key for it, what the server refused, or that it could not be reached.
pub(super) async fn run(args: SetArgs) -> Result<(), Failure> {
    if args.model.provider == FIXTURE {
        return fixture(args).await;
    }
    let given = args.key.given(&args.model)?;
    let tenant = args.connect.connection()?.tenant()?;
    let stored = tenant.providers().await?.into_iter().find(|provider| provider.id == args.model.provider);
    let ModelName { provider, model } = args.model;
    let choice = ModelChoice { base_url: endpoint(&provider, args.base_url, stored.as_ref()), provider, model };
    let (view, credential) = match (given, args.key.no_key) {
        (Some(given), _) => set_with_key(&tenant, choice, given, stored.as_ref()).await?,
        (None, true) => set_without_key(&tenant, choice).await?,
        (None, false) => set_with_stored(&tenant, choice, stored.as_ref()).await?,
    };
    args.output.print(&view, |view| told(view, &credential))
}

async fn fixture(args: SetArgs) -> Result<(), Failure> {
    if args.model.model != FIXTURE {
        return Err(Failure::usage(format!("the fixture has one model, not {}", args.model.model))
            .remedy("`nylorun model fixture`"));
    }
    let (before, now) = choose_fixture(&args.connect.connection()?.tenant()?).await?;
    args.output.print(&now, |_| told_fixture(&before))
}

/// A custom endpoint stays where it was when nothing else is said.
fn endpoint(provider: &str, given: Option<String>, stored: Option<&ProviderView>) -> Option<String> {
    match given {
        None if provider == CUSTOM => stored.and_then(base_url).map(str::to_owned),
        given => given,
    }
}

/// Where a stored provider's endpoint is, for `custom`.
pub(super) fn base_url(stored: &ProviderView) -> Option<&str> {
    stored.other.get("baseUrl").and_then(Value::as_str)
}

async fn set_with_key(
    tenant: &TenantClient,
    choice: ModelChoice,
    given: Given,
    stored: Option<&ProviderView>,
) -> Result<(ModelView, Credential), Failure> {
    let view = tenant.set_model(&with_key(choice, given.key)).await?;
    let replaced = if stored.is_some() { Replaced::StoredKey } else { Replaced::Nothing };
    Ok((view, Credential::Given { from: given.from, replaced }))
}

async fn set_without_key(tenant: &TenantClient, choice: ModelChoice) -> Result<(ModelView, Credential), Failure> {
    if choice.provider != CUSTOM {
        return Err(Failure::usage(format!("{} cannot be called without a key", choice.provider))
            .remedy(format!("leave --no-key out, or give one with {WAYS}")));
    }
    let settings = Map::from_iter([("compat".to_owned(), json!({REQUIRES_KEY: false}))]);
    let set = SetModel { settings: Some(settings), ..with_key(choice, String::new()) };
    Ok((tenant.set_model(&set).await?, Credential::None))
}

/// No key was given: the stored one is used where it belongs, and a custom endpoint that has none is called without.
async fn set_with_stored(
    tenant: &TenantClient,
    choice: ModelChoice,
    stored: Option<&ProviderView>,
) -> Result<(ModelView, Credential), Failure> {
    let Some(stored) = stored else {
        if choice.provider == CUSTOM {
            return set_without_key(tenant, choice).await;
        }
        let name = ModelName { provider: choice.provider.clone(), model: choice.model };
        let usual = name.usual_key_variable().map(|name| format!("set {name}, or ")).unwrap_or_default();
        return Err(Failure::usage(format!("no key of {} is stored, and none was given", choice.provider))
            .remedy(format!("{usual}give it with {WAYS}")));
    };
    let (known, wanted) = (base_url(stored), choice.base_url.as_deref());
    if known != wanted && has_no_key(stored) {
        return set_without_key(tenant, choice).await;
    }
    if known != wanted {
        let what = format!(
            "what is stored for {} belongs to {}, and is not sent to {}",
            choice.provider,
            known.unwrap_or("its own endpoint"),
            wanted.unwrap_or("its own endpoint")
        );
        return Err(Failure::usage(what).remedy(format!("give the key with {WAYS}, or say --no-key")));
    }
    let credential = if has_no_key(stored) { Credential::None } else { Credential::Stored };
    Ok((tenant.select_model(&choice).await?, credential))
}

/// Whether what is stored is an endpoint without a key: there is nothing that could be lost, or sent elsewhere.
fn has_no_key(stored: &ProviderView) -> bool {
    let compat = stored.other.get("settings").and_then(|settings| settings.get("compat"));
    compat.and_then(|compat| compat.get(REQUIRES_KEY)) == Some(&Value::Bool(false))
}

fn with_key(choice: ModelChoice, key: String) -> SetModel {
    SetModel { choice, settings: None, auth: ModelAuth::ApiKey(key) }
}

impl KeyArgs {
    /// The key that the arguments name, or that the provider's usual variable holds.
    fn given(&self, model: &ModelName) -> Result<Option<Given>, Failure> {
        let read = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
        if let Some(name) = &self.key_env {
            let unset = || Failure::usage(format!("the environment variable {name} is not set"));
            let key = read(name).ok_or_else(unset)?;
            return Ok(Some(Given { key, from: name.clone() }));
        }
        if let Some(path) = &self.key_file {
            return Ok(Some(Given { key: key_file::read(path)?, from: path.display().to_string() }));
        }
        if self.key_stdin {
            return Ok(Some(Given { key: key_of_stdin()?, from: "standard input".to_owned() }));
        }
        if self.no_key {
            return Ok(None);
        }
        let usual = model.usual_key_variable();
        Ok(usual.and_then(|name| Some(Given { key: read(name)?, from: name.to_owned() })))
    }
}

fn key_of_stdin() -> Result<String, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage("--key-stdin would show the key on this terminal")
            .remedy("pipe it in, as in `pass show KEY | nylorun model set …`, or use --key-env or --key-file"));
    }
    let mut key = String::new();
    stdin.read_to_string(&mut key).map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    let key = key.trim().to_owned();
    if key.is_empty() { Err(Failure::usage("standard input holds no key")) } else { Ok(key) }
}

fn told(view: &ModelView, credential: &Credential) -> String {
    let key = match credential {
        Credential::Given { from, replaced: Replaced::Nothing } => format!("from {from}, sealed and stored"),
        Credential::Given { from, replaced: Replaced::StoredKey } => {
            format!("from {from}, sealed and stored in the place of the one before")
        }
        Credential::Stored => "the one that is stored already".to_owned(),
        Credential::None => format!("none; if the endpoint wants one, give it with {WAYS}"),
    };
    format!("model: {}\nkey:   {}\n", current(view), visible(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(url: Option<&str>) -> ProviderView {
        let mut view = json!({"id": "custom", "model": "m"});
        if let Some(url) = url {
            view["baseUrl"] = json!(url);
        }
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_custom_endpoint_stays_where_it_was() {
        let before = stored(Some("http://a/v1"));
        assert_eq!(endpoint("custom", None, Some(&before)).as_deref(), Some("http://a/v1"));
        assert_eq!(endpoint("custom", Some("http://b/v1".into()), Some(&before)).as_deref(), Some("http://b/v1"));
        assert_eq!(endpoint("custom", None, None), None);
        assert_eq!(endpoint("anthropic", None, Some(&stored(None))), None);
    }

    #[test]
    fn what_the_model_is_called_with_is_told() {
        let view: ModelView =
            serde_json::from_value(json!({"configured": true, "provider": "p", "model": "m"})).unwrap();
        let from = || "MY_KEY".to_owned();
        let given = |replaced| told(&view, &Credential::Given { from: from(), replaced });
        assert_eq!(given(Replaced::Nothing), "model: p/m\nkey:   from MY_KEY, sealed and stored\n");
        assert!(given(Replaced::StoredKey).ends_with("in the place of the one before\n"));
        assert_eq!(told(&view, &Credential::Stored), "model: p/m\nkey:   the one that is stored already\n");
    }
}
