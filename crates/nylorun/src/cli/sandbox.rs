//! `nylorun sandbox`

use std::convert::Infallible;

use clap::{Args, Subcommand, ValueEnum};
use nylorun_client::SandboxSettings;
use serde_json::{Map, Value, json};

use super::args::Source;
use super::connect::ConnectArgs;
use super::document;
use super::failure::Failure;
use super::output::OutputArgs;
use super::term::visible;

/// `nylorun sandbox`
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Say which sandbox sessions get, and within which limits
    Show(ShowArgs),
    /// Set it, for sessions that are opened from now on
    Set(SetArgs),
}

/// `nylorun sandbox show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun sandbox show
  nylorun sandbox show --json | jq .config")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `nylorun sandbox set`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun sandbox set --default virtual
  nylorun sandbox set --memory 512MiB --max-memory 4GiB --idle 5m
  nylorun sandbox set --network api.example.com,*.example.org
  nylorun sandbox set --file settings.yaml

What is not named stays as it is; a file replaces everything. Sessions that are open keep what they were opened with.

A whole file:
  default: virtual
  limits:
    network: [api.example.com]
    resources: {cpus: 4, memory: 8GiB}
    defaultResources: {cpus: 2, memory: 1GiB}
    idle: 15m")]
pub(crate) struct SetArgs {
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What is to change.
#[derive(Debug, Args)]
#[group(id = "changes", required = true, multiple = true)]
struct Changes {
    /// What a session gets that does not say whether it wants a sandbox
    #[arg(long, value_enum)]
    default: Option<Default>,
    /// Memory of a sandbox that asks for none, such as 512MiB
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The most memory that a sandbox may ask for
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<String>,
    /// Processors of a sandbox that asks for none
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// The most processors that a sandbox may ask for
    #[arg(long, value_name = "N")]
    max_cpus: Option<u32>,
    /// Hosts that sandboxes may ask to reach, divided by commas; off: none
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    network: Option<Vec<String>>,
    /// Stop a sandbox that nobody used for so long, such as 15m
    #[arg(long, value_name = "TIME")]
    idle: Option<String>,
    /// All settings, in JSON or YAML, in the place of those that hold; - reads standard input
    #[arg(long, value_name = "FILE", value_parser = source, conflicts_with_all = [
        "default", "memory", "max_memory", "cpus", "max_cpus", "network", "idle",
    ])]
    file: Option<Source>,
}

/// What a session gets that says nothing of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Default {
    /// None
    None,
    /// A sandbox with the memory and the processors of the settings
    Virtual,
}

impl Default {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Virtual => "virtual",
        }
    }
}

fn source(text: &str) -> Result<Source, Infallible> {
    Ok(Source::from(text))
}

/// Runs one of them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn run(command: SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Show(args) => show(args).await,
        SandboxCommand::Set(args) => set(args).await,
    }
}

async fn show(args: ShowArgs) -> Result<(), Failure> {
    let settings = args.connect.connection()?.tenant()?.sandbox().await?;
    args.output.print(&settings, told)
}

async fn set(args: SetArgs) -> Result<(), Failure> {
    let tenant = args.connect.connection()?.tenant()?;
    let config = match &args.changes.file {
        Some(file) => match document::read(file, document::Kind::Settings)? {
            Value::Object(config) => config,
            _ => return Err(Failure::new("the settings have to be a mapping of names to values")),
        },
        None => changed(tenant.sandbox().await?.to_put(), args.changes),
    };
    let settings = tenant.set_sandbox(&config).await?;
    args.output.print(&settings, told)
}

/// The settings with these changes.
fn changed(mut config: Map<String, Value>, changes: Changes) -> Map<String, Value> {
    let Changes { default, memory, max_memory, cpus, max_cpus, network, idle, file: _ } = changes;
    let network = network.map(|hosts| if hosts == ["off"] { Vec::new() } else { hosts });
    let changes = [
        (&["default"][..], default.map(|default| json!(default.as_str()))),
        (&["limits", "defaultResources", "memory"], memory.map(Value::from)),
        (&["limits", "resources", "memory"], max_memory.map(Value::from)),
        (&["limits", "defaultResources", "cpus"], cpus.map(Value::from)),
        (&["limits", "resources", "cpus"], max_cpus.map(Value::from)),
        (&["limits", "network"], network.map(Value::from)),
        (&["limits", "idle"], idle.map(Value::from)),
    ];
    for (path, value) in changes {
        if let Some(value) = value {
            put(&mut config, path, value);
        }
    }
    config
}

/// Puts a value at this place, and objects on the way to it.
fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => {
            object.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let inner = object.entry(*name).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

fn told(settings: &SandboxSettings) -> String {
    let config = Value::Object(settings.config.clone());
    let at = |path: &str| config.pointer(path).map(plain).unwrap_or_default();
    let most = |path: &str, unit: &str| {
        let default = at(&format!("/limits/defaultResources/{path}"));
        format!("{default}{unit}, at most {}{unit}", at(&format!("/limits/resources/{path}")))
    };
    let network = match at("/limits/network") {
        none if none.is_empty() => "none".to_owned(),
        hosts => hosts,
    };
    let backend = match (&settings.backend, &settings.isolation) {
        (Some(backend), Some(isolation)) => format!("{} ({})", visible(backend), visible(isolation)),
        (Some(backend), None) => visible(backend),
        (None, _) => "none".to_owned(),
    };
    let lines = [
        ("default", at("/default")),
        ("memory", most("memoryMiB", "MiB")),
        ("processors", most("cpus", "")),
        ("network", network),
        ("idle", at("/limits/idle")),
        ("backend", format!("{backend}: {}", visible(&settings.reason))),
    ];
    lines.iter().map(|(name, value)| format!("{name:<10}  {value}\n")).collect()
}

/// A text as it is, a list of texts divided by commas, and other values as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => visible(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        changes: Changes,
    }

    fn changes(args: &[&str]) -> Result<Changes, clap::Error> {
        Line::try_parse_from([&["set"], args].concat()).map(|line| line.changes)
    }

    #[test]
    fn what_is_named_changes_and_the_rest_stays() {
        let now =
            json!({"default": "none", "limits": {"network": ["a.com"], "resources": {"cpus": 4}}, "placement": {}});
        let Value::Object(now) = now else { unreachable!("it is an object") };
        let asked = ["--default", "virtual", "--memory", "512MiB", "--max-cpus", "8", "--network", "b.com,*.c.com"];
        assert_eq!(
            Value::Object(changed(now.clone(), changes(&asked).unwrap())),
            json!({
                "default": "virtual",
                "limits": {
                    "network": ["b.com", "*.c.com"], "resources": {"cpus": 8}, "defaultResources": {"memory": "512MiB"},
                },
                "placement": {},
            })
        );
        let none = changed(now, changes(&["--network", "off"]).unwrap());
        assert_eq!(none["limits"]["network"], json!([]));
    }

    #[test]
    fn something_has_to_change_and_a_file_stands_alone() {
        for wrong in [&[][..], &["--file", "x", "--idle", "1m"], &["--default", "pod"], &["--cpus", "-1"]] {
            assert!(changes(wrong).is_err(), "{wrong:?}");
        }
        assert!(changes(&["--file", "-"]).is_ok());
    }

    #[test]
    fn settings_stand_line_by_line() {
        let settings = json!({
            "backend": "virtual", "isolation": "process", "reason": "the first that works",
            "config": {
                "default": {"resources": {"cpus": 1}},
                "limits": {
                    "network": ["a.com", "*.b.com"], "idle": "15m",
                    "resources": {"cpus": 4, "memoryMiB": 8192}, "defaultResources": {"cpus": 2, "memoryMiB": 1024},
                },
            },
        });
        let expected = "\
default     {\"resources\":{\"cpus\":1}}
memory      1024MiB, at most 8192MiB
processors  2, at most 4
network     a.com, *.b.com
idle        15m
backend     virtual (process): the first that works
";
        assert_eq!(told(&serde_json::from_value(settings).unwrap()), expected);
    }
}
