//! `nylorun status`

use clap::Args;
use nylorun_client::{Health, Ready, TenantStatus};
use serde::Serialize;
use serde_json::{Map, Value};

use super::connect::{ConnectArgs, Connection};
use super::failure::Failure;
use super::model;
use super::output::OutputArgs;
use super::term::{Style, Tone, visible};

/// `nylorun status`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun status
  nylorun status --json | jq .tenant.counts

Exit code 3: nothing runs there.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Serialize)]
struct Status {
    url: String,
    /// What told us of it, in words.
    origin: String,
    health: Health,
    ready: Ready,
    /// Absent without a management key.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<TenantStatus>,
}

/// Asks the server how it is.
///
/// # Errors
/// Nothing runs there (exit code 3), or it is not ready (exit code 1, after the status was printed).
pub(crate) async fn run(args: StatusArgs) -> Result<(), Failure> {
    let connection = args.connect.connection()?;
    let status = ask(&connection).await?;
    args.output.print(&status, |status| told(status, &Style::of_stdout()))?;
    if status.ready.status == "ready" { Ok(()) } else { Err(Failure::told()) }
}

async fn ask(connection: &Connection) -> Result<Status, Failure> {
    let client = connection.any_client()?;
    let health = client.health().await.map_err(|error| connection.failure(error))?;
    let ready = client.ready().await?;
    let tenant = match connection.tenant() {
        Ok(tenant) if ready.status == "ready" => Some(tenant.status().await?),
        Ok(_) | Err(_) => None,
    };
    let (url, origin) = (connection.url.clone(), connection.origin.clone());
    Ok(Status { url, origin, health, ready, tenant })
}

fn told(status: &Status, style: &Style) -> String {
    let mut lines = vec![("server", format!("{} ({})", status.url, readiness(&status.ready, style)))];
    let protocol = &status.health.protocol;
    let version = format!("{}, protocol {} to {}", status.health.version, protocol.min, protocol.max);
    lines.push(("found by", visible(&status.origin)));
    lines.push(("version", format!("{version}, process {}", status.health.pid)));
    if let Some(tenant) = &status.tenant {
        lines.extend(lines_of(tenant));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line =
        |(name, text): &(&str, String)| format!("{}  {text}\n", style.paint(Tone::Faint, &format!("{name:width$}")));
    lines.iter().map(line).collect()
}

fn readiness(ready: &Ready, style: &Style) -> String {
    let failing = failing(&ready.checks);
    match (ready.status.as_str(), failing.is_empty()) {
        ("ready", _) => style.paint(Tone::Good, "ready"),
        (_, true) => style.paint(Tone::Bad, "not ready"),
        (_, false) => style.paint(Tone::Bad, &visible(&format!("not ready: {}", failing.join(", ")))),
    }
}

/// Names of checks that are not true.
pub(crate) fn failing(checks: &Map<String, Value>) -> Vec<&str> {
    checks.iter().filter(|(_, value)| **value == Value::Bool(false)).map(|(name, _)| name.as_str()).collect()
}

fn lines_of(status: &TenantStatus) -> Vec<(&'static str, String)> {
    let member = |name: &str| status.tenant.get(name).and_then(Value::as_str).unwrap_or_default();
    let counts = &status.counts;
    let sessions = format!(
        "{}, {} with a turn that runs, {} uncertain effects",
        counts.sessions, counts.running_sessions, counts.uncertain_effects
    );
    let agents = status.other.get("agents").and_then(Value::as_array).map_or(0, Vec::len);
    let backend = status.sandbox.as_ref().and_then(|sandbox| sandbox.get("backend")?.as_str());
    vec![
        ("tenant", visible(&format!("{} ({})", member("name"), member("id")))),
        ("model", model::current(&status.model)),
        ("agents", agents.to_string()),
        ("sessions", sessions),
        ("workspaces", visible(backend.unwrap_or("backend chosen by the server"))),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_reads_as_a_list() {
        let health = json!({"status": "ok", "service": "nylorun-runtime", "version": "0.1.0", "hostId": "h", "pid": 7,
            "protocol": {"min": 4, "max": 10, "features": []}});
        let tenant = json!({"tenant": {"id": "tn_1", "name": "default"}, "checks": {}, "model": {"configured": false},
            "agents": [{"agentId": "a"}], "sandbox": {"backend": "virtual", "retained": 0},
            "counts": {"sessions": 3, "runningSessions": 1, "uncertainEffects": 0}});
        let status = Status {
            url: "http://127.0.0.1:4000".into(),
            origin: "/p/.nylorun/link.json".into(),
            health: serde_json::from_value(health).unwrap(),
            ready: serde_json::from_value(
                json!({"status": "not_ready", "checks": {"listener": true, "tenant": false}}),
            )
            .unwrap(),
            tenant: Some(serde_json::from_value(tenant).unwrap()),
        };
        let expected = "\
server      http://127.0.0.1:4000 (not ready: tenant)
found by    /p/.nylorun/link.json
version     0.1.0, protocol 4 to 10, process 7
tenant      default (tn_1)
model       none chosen
agents      1
sessions    3, 1 with a turn that runs, 0 uncertain effects
workspaces  virtual
";
        assert_eq!(told(&status, &Style::plain()), expected);
    }
}
