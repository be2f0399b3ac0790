//! `nylorun demo`: the main job on a fresh machine in one command.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use nylorun_client::{
    Client, Command, Deltas, Environment, Follow, InlineEnvironment, Key, ModelAuth, ModelChoice, OpenSession, Seed,
    SetModel, TenantClient, Update,
};
use serde_json::{Value, json};

use crate::cli::show::{EventPrinter, View};
use crate::cli::term::Style;
use crate::cli::{DemoArgs, Failure, HomeArgs, ModelName, ServeArgs};
use crate::config::Config;
use crate::runtime::Runtime;
use crate::serve::multi_thread_runtime;

const AGENT: &str = "demo";
/// What the fixture model does, one step a model call: `docs/guide/fixture-model.md`.
const SCRIPT: &str = r#"[
  {"text": "I will write a small report and count its words.",
   "tools": [{"name": "bash", "input": {
     "command": "mkdir -p report; printf 'durable\\nfenced\\nrecorded\\n' > report/words; wc -l report/words"}}]},
  {"text": "Now I look at it in two ways at once.",
   "tools": [{"name": "read", "input": {"path": "report/words"}},
             {"name": "grep", "input": {"pattern": "fenced|recorded", "path": "report"}}]},
  {"text": "Done: the report has three words, and each step of this turn is in the session's record."}
]"#;
const TASK: &str = "Create the file report/words.txt with three words, one a line, that describe a durable system. \
     Then read it back with a tool and tell me the words.";

/// Runs the demo.
///
/// # Errors
/// The runtime cannot start, or the turn does not complete.
pub(crate) fn run(args: DemoArgs) -> Result<(), Failure> {
    let folder = tempfile::Builder::new().prefix("nylorun-demo-").tempdir();
    let folder = folder.map_err(|error| Failure::new(format!("cannot make a temporary home directory: {error}")))?;
    let home = HomeArgs { home: Some(folder.path().to_owned()) };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = Config::of_process(&ServeArgs { home, listen: Some(listen), ..ServeArgs::default() })?;
    multi_thread_runtime()?.block_on(async {
        let begun = Instant::now();
        let runtime = Runtime::start(&Config { database: None, ..config }).await?;
        say(&format!("runtime   {} (a temporary home, started in {} ms)", runtime.url(), begun.elapsed().as_millis()))?;
        let result = turn(&runtime, &args).await;
        runtime.stop().await;
        result
    })
}

async fn turn(runtime: &Runtime, args: &DemoArgs) -> Result<(), Failure> {
    let credentials = runtime.credentials();
    let missing = || Failure::new("the home directory's keys are incomplete");
    let key = |key: &crate::cli::NamedKey| Key::new(key.key.as_str()).map_err(|error| Failure::new(error.to_string()));
    let management = key(credentials.management_key.as_ref().ok_or_else(missing)?)?;
    let application = key(credentials.application_key.as_ref().ok_or_else(missing)?)?;
    let tenant = TenantClient::new(runtime.url(), management)?;
    let message = choose_model(&tenant, args).await?;

    let client = Client::new(runtime.url(), application)?;
    client.save_agent(AGENT, &manifest(), "demo").await?;
    say(&format!("agent     {AGENT}"))?;
    let environment = Some(Environment::Inline(InlineEnvironment::default()));
    client.open_session("demo-session", &OpenSession { environment, ..OpenSession::new(AGENT, "you") }).await?;
    let session = client.session("demo-session");
    say("session   demo-session, with a sandbox of its own\n")?;

    let begun = Instant::now();
    let accepted = session.command(&Command::text(message)?).await?;
    let mut events = session.events(Follow { after: accepted.cursor, deltas: Deltas::With, ..Follow::default() });
    let mut printer = EventPrinter::new(std::io::stdout(), Style::of_stdout(), View::Conversation);
    let mut tools = 0;
    let ended = loop {
        let update = events.next().await.ok_or_else(|| Failure::new("the event stream ended"))??;
        printer.update(&update)?;
        if let Update::Event(event) = update {
            tools += u32::from(event.kind == "tool.completed");
            if event.ends_turn() {
                break event.kind;
            }
        }
    };
    say(&format!("\n{ended} after {} ms, with {tools} tool calls", begun.elapsed().as_millis()))?;
    if ended != "turn.completed" {
        return Err(Failure::new(format!("the demo's turn ended as {ended}")));
    }
    say("next      `nylorun start`, then `nylorun agent save FILE` and `nylorun chat AGENT`")
}

/// The model that answers, and what it is asked.
async fn choose_model(tenant: &TenantClient, args: &DemoArgs) -> Result<String, Failure> {
    let chosen = args.model.clone().or_else(model_of_environment).filter(|model| model.provider != "fixture");
    let Some(model) = chosen else {
        tenant.seed(&Seed::FixtureModel).await?;
        say("model     the built-in fixture (no key needed); --model PROVIDER/MODEL uses a real one")?;
        return Ok(SCRIPT.to_owned());
    };
    let variable = args.key_env.clone().or_else(|| model.usual_key_variable().map(str::to_owned));
    let key = variable.and_then(|name| std::env::var(name).ok()).filter(|key| !key.is_empty());
    let is_custom = model.provider == "custom";
    let auth = match key {
        Some(key) => ModelAuth::ApiKey(key),
        None if is_custom => ModelAuth::ApiKey("none".to_owned()),
        None => {
            return Err(Failure::usage(format!("no key for {}", model.provider))
                .remedy("name the environment variable that holds it with --key-env"));
        }
    };
    say(&format!("model     {}/{}", model.provider, model.model))?;
    let choice = ModelChoice { provider: model.provider, model: model.model, base_url: args.base_url.clone() };
    tenant.set_model(&SetModel { choice, settings: None, auth }).await?;
    Ok(TASK.to_owned())
}

/// A provider whose key is in the environment is used without being asked for.
fn model_of_environment() -> Option<ModelName> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|key| !key.is_empty());
    let name = |model: &str| ModelName { provider: "anthropic".to_owned(), model: model.to_owned() };
    is_set("ANTHROPIC_API_KEY").then(|| name("claude-sonnet-5-5"))
}

fn manifest() -> Value {
    json!({
        "manifestSchemaVersion": 5,
        "id": AGENT,
        "name": "Demo",
        "description": "Shows a turn with tools.",
        "capabilities": [{
            "id": "demo",
            "type": "agent",
            "instructions": ["You work in a sandbox. Use your tools, then answer in one short sentence."],
        }],
    })
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
