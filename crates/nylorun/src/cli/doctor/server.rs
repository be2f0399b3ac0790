//! The server: does it run, can we talk to it, and has it what it needs?

use nylorun_client::{Error, SandboxSettings, TenantClient, TenantStatus};
use serde_json::Value;

use super::super::connect::{APPLICATION_KEY, ConnectArgs, Connection, MANAGEMENT_KEY};
use super::super::failure::Failure;
use super::super::model;
use super::super::status::failing;
use super::Check;

const START: &str = "start it with `nylorun start`";

/// Looks at the server, its database, its model and its workspaces.
pub(super) async fn checks(connect: &ConnectArgs) -> Vec<Check> {
    let connection = match connect.connection() {
        Ok(connection) => connection,
        Err(failure) => return vec![unfound(&failure)],
    };
    let mut checks = Vec::new();
    match reach(&connection, &mut checks).await {
        Ok(tenant) => of_tenant(&tenant, &mut checks).await,
        Err(Some(check)) => checks.push(check),
        Err(None) => {}
    }
    checks
}

/// Looks at the workspace backends only.
pub(super) async fn sandbox(connect: &ConnectArgs) -> Vec<Check> {
    match connect.connection().and_then(|connection| connection.tenant()) {
        Ok(tenant) => workspaces(&tenant, None).await,
        Err(failure) => vec![unfound(&failure)],
    }
}

fn unfound(failure: &Failure) -> Check {
    Check::fail("server", failure.to_string(), failure.advice().unwrap_or(START))
}

/// A client of the Management API, once the server was found to run; the reason when it cannot be asked further.
async fn reach(connection: &Connection, checks: &mut Vec<Check>) -> Result<TenantClient, Option<Check>> {
    let told = |name: &str, remedy: &str| {
        let (name, remedy) = (name.to_owned(), remedy.to_owned());
        move |error: Failure| Some(Check::fail(&name, error.to_string(), remedy))
    };
    let client = connection.any_client().map_err(told("keys", APPLICATION_KEY))?;
    let unreached = |error| Failure::new(format!("{error} (its address comes from {})", connection.origin));
    let health = client.health().await.map_err(unreached).map_err(told("server", START))?;
    let from = format!("{} ({}), from {}", connection.url, health.version, connection.origin);
    checks.push(Check::ok("server", from));
    if let Some(reason) = health.incompatibility() {
        return Err(Some(Check::fail("protocol", reason, "use the `nylorun` of the server's own version")));
    }
    checks.push(Check::ok("protocol", format!("{} to {}", health.protocol.min, health.protocol.max)));
    let ready = client.ready().await.map_err(Failure::from).map_err(told("ready", START))?;
    if ready.status == "ready" {
        checks.push(Check::ok("ready", "all checks pass"));
    } else {
        let detail = format!("failing: {}", failing(&ready.checks).join(", "));
        checks.push(Check::fail("ready", detail, "look into the server's log"));
    }
    if let Ok(client) = connection.client() {
        client.me().await.map_err(Failure::from).map_err(told("application key", APPLICATION_KEY))?;
        checks.push(Check::ok("application key", "accepted"));
    }
    let no_key = |error: Failure| Some(Check::warn("management key", error.to_string(), MANAGEMENT_KEY));
    connection.tenant().map_err(no_key)
}

async fn of_tenant(tenant: &TenantClient, checks: &mut Vec<Check>) {
    let status = match tenant.status().await {
        Ok(status) => status,
        Err(error) => {
            return checks.push(Check::fail("management key", error.to_string(), MANAGEMENT_KEY));
        }
    };
    checks.push(Check::ok("management key", "accepted"));
    checks.push(database(&status));
    checks.push(chosen_model(&status));
    checks.extend(unsettled(&status));
    checks.extend(workspaces(tenant, status.sandbox.as_ref()).await);
}

fn database(status: &TenantStatus) -> Check {
    let failing: Vec<&str> = failing(&status.checks).into_iter().filter(|name| *name != "model").collect();
    if failing.is_empty() {
        return Check::ok("database", "store and schema are right");
    }
    Check::fail("database", format!("failing: {}", failing.join(", ")), "look into the server's log")
}

fn chosen_model(status: &TenantStatus) -> Check {
    let current = model::current(&status.model);
    let works = status.checks.get("model").and_then(Value::as_bool);
    match (status.model.configured, works) {
        (_, Some(true)) | (true, None) => Check::ok("model", current),
        (true, Some(false)) => Check::fail(
            "model",
            format!("{current} cannot be called: its stored credential does not open with the server's vault key"),
            "start the server with the keys/vault-kek that sealed it, or give the key again with `nylorun model set`",
        ),
        (false, _) => Check::warn(
            "model",
            current,
            "`nylorun model set PROVIDER/MODEL`, or `nylorun model fixture` to try without one",
        ),
    }
}

fn unsettled(status: &TenantStatus) -> Option<Check> {
    let count = status.counts.uncertain_effects;
    let remedy = "`nylorun session list --uncertain`, then `nylorun session show ID`";
    (count > 0).then(|| Check::warn("effects", format!("{count} with an unknown outcome"), remedy))
}

/// The probes of each backend; from a server that has no route for them, only which backend it chose.
async fn workspaces(tenant: &TenantClient, known: Option<&Value>) -> Vec<Check> {
    match tenant.sandbox().await {
        Ok(settings) => probes(&settings),
        Err(Error::Refused(refusal)) if refusal.status == 404 => {
            let sandbox = match known {
                Some(sandbox) => Some(sandbox.clone()),
                None => tenant.status().await.ok().and_then(|status| status.sandbox),
            };
            let backend = sandbox.as_ref().and_then(|sandbox| sandbox.get("backend")?.as_str());
            vec![match backend {
                Some(_) => backend_check(backend),
                None => Check::ok("workspaces", "the server chooses the backend, and does not tell which"),
            }]
        }
        Err(error) => vec![Check::fail("workspaces", error.to_string(), START)],
    }
}

fn backend_check(backend: Option<&str>) -> Check {
    match backend {
        Some(name) => Check::ok("workspaces", format!("backend {name}")),
        None => Check::warn(
            "workspaces",
            "no backend works here: agents have no shell and no files",
            "start the server with NYLORUN_SANDBOX=virtual, which works everywhere",
        ),
    }
}

fn probes(settings: &SandboxSettings) -> Vec<Check> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut checks = vec![backend_check(settings.backend.as_deref())];
    for probe in &settings.probes {
        let name = format!("backend {}", text(probe.get("name")));
        let parts = ["isolation", "version", "reason"].map(|member| text(probe.get(member)));
        let detail = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        checks.push(match probe.get("available") {
            Some(Value::Bool(true)) => Check::ok(&name, detail),
            _ => Check::ok(&name, format!("not usable here: {detail}")),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::*;

    fn status(model: &Value, checks: &Value, uncertain: u64) -> TenantStatus {
        let body = json!({"tenant": {}, "checks": checks, "model": model, "counts": {"uncertainEffects": uncertain}});
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn a_model_is_chosen_missing_or_broken() {
        let chosen = json!({"configured": true, "provider": "p", "model": "m"});
        let none = json!({"configured": false});
        let verdict = |model: &Value, works: &Value| chosen_model(&status(model, &json!({"model": works}), 0)).verdict;
        assert_eq!(verdict(&chosen, &json!(true)), Verdict::Ok);
        assert_eq!(verdict(&chosen, &json!(false)), Verdict::Fail);
        assert_eq!(verdict(&none, &json!(false)), Verdict::Warn);
        // The fixture model works without a provider.
        assert_eq!(verdict(&none, &json!(true)), Verdict::Ok);
    }

    #[test]
    fn database_and_effects_are_looked_at() {
        let none = json!({"configured": false});
        assert_eq!(database(&status(&none, &json!({"store": true, "model": false}), 0)).verdict, Verdict::Ok);
        assert_eq!(database(&status(&none, &json!({"store": true, "schema": false}), 0)).detail, "failing: schema");
        assert_eq!(unsettled(&status(&none, &json!({}), 0)), None);
        assert_eq!(unsettled(&status(&none, &json!({}), 2)).unwrap().detail, "2 with an unknown outcome");
    }

    #[test]
    fn every_probe_is_told() {
        let settings = json!({"backend": "virtual", "probes": [
            {"name": "virtual", "available": true, "isolation": "process"},
            {"name": "microvm", "available": false, "reason": "no /dev/kvm"}]});
        let details: Vec<String> = probes(&serde_json::from_value(settings).unwrap())
            .into_iter()
            .map(|check| format!("{}: {}", check.name, check.detail))
            .collect();
        assert_eq!(
            details,
            [
                "workspaces: backend virtual",
                "backend virtual: process",
                "backend microvm: not usable here: no /dev/kvm"
            ]
        );
        assert_eq!(probes(&SandboxSettings::default())[0].verdict, Verdict::Warn);
    }
}
