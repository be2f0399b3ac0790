//! `nylorun model`

mod set;

use clap::{Args, Subcommand};
use nylorun_client::{ModelChoice, ModelView, ProviderModels, ProviderView, TenantClient};
use serde::Serialize;

use super::connect::ConnectArgs;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::{Style, Tone, one_line, table, visible};

/// `nylorun model`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Choose the tenant's model, with the key of its provider or with the one that is stored
    Set(set::SetArgs),
    /// Say which model is chosen, and list the catalogue
    List(ListArgs),
    /// Use the built-in fixture model, which needs no key and no network; stored keys stay
    Fixture(FixtureArgs),
}

/// Provider and model of the built-in fixture.
const FIXTURE: &str = "fixture";

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
        ModelCommand::Set(args) => set::run(args).await,
        ModelCommand::List(args) => list(args).await,
        ModelCommand::Fixture(args) => fixture(args).await,
    }
}

#[derive(Serialize)]
struct Listing {
    current: ModelView,
    providers: Vec<ProviderView>,
    catalogue: Vec<ProviderModels>,
}

impl Listing {
    fn knows(&self, provider: &str) -> bool {
        self.catalogue.iter().any(|known| known.id == provider)
    }

    fn row(&self, provider: &str, model: &str, keyed: Keyed, name: &str) -> [String; 4] {
        let is_chosen =
            self.current.provider.as_deref() == Some(provider) && self.current.model.as_deref() == Some(model);
        let keyed = match keyed {
            Keyed::Yes => "yes",
            Keyed::No => "",
        };
        [
            if is_chosen { "*" } else { "" }.to_owned(),
            one_line(&format!("{provider}/{model}"), 60),
            keyed.to_owned(),
            one_line(name, 50),
        ]
    }
}

/// Whether a provider's key is stored.
#[derive(Clone, Copy)]
enum Keyed {
    Yes,
    No,
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
        let is_keyed = listing.providers.iter().any(|known| known.id == provider.id);
        let keyed = if is_keyed { Keyed::Yes } else { Keyed::No };
        rows.extend(provider.models.iter().map(|model| listing.row(&provider.id, &model.id, keyed, &model.name)));
    }
    // Endpoints of one's own are in no catalogue.
    for stored in listing.providers.iter().filter(|stored| !listing.knows(&stored.id)) {
        let model = stored.model.as_deref().unwrap_or_default();
        rows.push(listing.row(&stored.id, model, Keyed::Yes, &format!("at {}", set::base_url(stored).unwrap_or("?"))));
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
    let tenant = args.connect.connection()?.tenant()?;
    let (before, now) = choose_fixture(&tenant).await?;
    args.output.print(&now, |_| told_fixture(&before))
}

/// Makes the fixture answer. Gives the model before, and the one now.
async fn choose_fixture(tenant: &TenantClient) -> Result<(ModelView, ModelView), Failure> {
    let before = tenant.model().await?;
    let choice = ModelChoice { provider: FIXTURE.to_owned(), model: FIXTURE.to_owned(), base_url: None };
    Ok((before, tenant.select_model(&choice).await?))
}

fn told_fixture(before: &ModelView) -> String {
    let (provider, name) = match (&before.provider, &before.model) {
        (Some(provider), Some(model)) if provider != FIXTURE => (provider, visible(&format!("{provider}/{model}"))),
        (Some(_), _) => return "the fixture model answers already\n".to_owned(),
        (None, _) => return "the fixture model answers from now on\n".to_owned(),
    };
    // A custom endpoint may have been set without a key.
    let stored = if provider == set::CUSTOM { "endpoint, and its key if it has one, stay" } else { "key stays" };
    format!(
        "the fixture model answers from now on, in the place of {name}\n\
         its {stored} stored: `nylorun model set {name}` goes back without giving it again\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(current: &serde_json::Value) -> Listing {
        let models = json!([{"id": "m1", "name": "Model One"}, {"id": "m2", "name": "Model \u{1b}Two"}]);
        Listing {
            current: serde_json::from_value(current.clone()).unwrap(),
            providers: serde_json::from_value(json!([
                {"id": "custom", "model": "c", "active": false, "baseUrl": "http://h/v1"},
                {"id": "p", "active": true},
            ]))
            .unwrap(),
            catalogue: serde_json::from_value(json!([{"id": "p", "name": "P", "models": models}])).unwrap(),
        }
    }

    #[test]
    fn the_way_back_from_the_fixture_is_told() {
        let view = |view: serde_json::Value| serde_json::from_value::<ModelView>(view).unwrap();
        let real = view(json!({"configured": true, "provider": "p", "model": "m/2"}));
        assert!(told_fixture(&real).contains("`nylorun model set p/m/2`"), "{}", told_fixture(&real));
        let custom = told_fixture(&view(json!({"configured": true, "provider": "custom", "model": "m"})));
        assert!(custom.contains("its endpoint, and its key if it has one, stay stored"), "{custom}");
        let fixture = view(json!({"configured": true, "provider": "fixture", "model": "fixture"}));
        assert_eq!(told_fixture(&fixture), "the fixture model answers already\n");
        let none = view(json!({"configured": false}));
        assert_eq!(told_fixture(&none), "the fixture model answers from now on\n");
    }

    #[test]
    fn the_chosen_model_is_marked() {
        let text = told(&listing(&json!({"configured": true, "provider": "p", "model": "m2"})), &Style::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "model: p/m2",
                "",
                "   MODEL     KEY  NAME",
                "   p/m1      yes  Model One",
                "*  p/m2      yes  Model ␛Two",
                "   custom/c  yes  at http://h/v1",
            ]
        );
        assert!(told(&listing(&json!({"configured": false})), &Style::plain()).starts_with("model: none chosen\n"));
    }
}
