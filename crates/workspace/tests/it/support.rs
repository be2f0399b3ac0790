//! A manager over a temporary home, and a log in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use nylorun_domain::id::{SessionId, TenantId, TurnId};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceEvent, WorkspaceKey, WorkspaceRecord, WorkspaceSpec};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::workspaces::{
    LogError, RunClaim, WorkspaceAnswer, WorkspaceCall, WorkspaceChange, WorkspaceLog, WorkspaceOutcome, Workspaces,
};
use nylorun_workspace::{Lifetime, ManagerConfig, Preference, Quota, ShellCommand, WorkspaceManager};
use tempfile::TempDir;

/// A log in memory.
#[derive(Default)]
pub(crate) struct MemoryLog {
    records: Mutex<BTreeMap<WorkspaceKey, WorkspaceRecord>>,
    changes: Mutex<Vec<WorkspaceChange>>,
    gone: Mutex<BTreeSet<SessionId>>,
    failure: Mutex<Option<LogError>>,
    /// The writes that still succeed, and how all after them fail.
    writes_left: Mutex<Option<(usize, LogError)>>,
    now: AtomicI64,
}

impl MemoryLog {
    /// Every event so far, oldest first, without the times that differ from run to run.
    pub(crate) fn changes(&self) -> Vec<WorkspaceChange> {
        self.changes.lock().unwrap().clone()
    }

    /// The newest events that the manager wrote, oldest first, in short.
    pub(crate) fn last<const N: usize>(&self) -> [String; N] {
        let changes = self.changes();
        let newest = in_short(changes.iter().rev().take(N).rev().map(|change| &change.event));
        newest.try_into().unwrap_or_else(|fewer| panic!("only {fewer:?}"))
    }

    pub(crate) fn put(&self, record: WorkspaceRecord) {
        self.records.lock().unwrap().insert(record.key.clone(), record);
    }

    pub(crate) fn get(&self, key: &WorkspaceKey) -> Option<WorkspaceRecord> {
        self.records.lock().unwrap().get(key).cloned()
    }

    pub(crate) fn advance(&self, ms: i64) -> Millis {
        Millis(self.now.fetch_add(ms, Ordering::SeqCst) + ms)
    }

    pub(crate) fn owner_is_gone(&self, session: &str) {
        self.gone.lock().unwrap().insert(SessionId::from_trusted(session));
    }

    pub(crate) fn fail_with(&self, failure: Option<LogError>) {
        *self.failure.lock().unwrap() = failure;
        *self.writes_left.lock().unwrap() = None;
    }

    /// Lets this many writes succeed, and fails all after them.
    pub(crate) fn fail_after(&self, writes: usize, failure: LogError) {
        *self.writes_left.lock().unwrap() = Some((writes, failure));
    }

    fn check_write(&self) -> Result<(), LogError> {
        match &mut *self.writes_left.lock().unwrap() {
            Some((0, failure)) => return Err(failure.clone()),
            Some((writes, _)) => *writes -= 1,
            None => {}
        }
        self.check()
    }

    fn check(&self) -> Result<(), LogError> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl WorkspaceLog for MemoryLog {
    fn record(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<Option<WorkspaceRecord>, LogError>> {
        let record = self.check().map(|()| self.get(key));
        Box::pin(async { record })
    }

    fn records(&self) -> BoxFuture<'_, Result<Vec<WorkspaceRecord>, LogError>> {
        let records = self.check().map(|()| self.records.lock().unwrap().values().cloned().collect());
        Box::pin(async { records })
    }

    fn write(&self, change: WorkspaceChange) -> BoxFuture<'_, Result<(), LogError>> {
        let written = self.check_write().map(|()| {
            change.record.clone().into_iter().for_each(|record| self.put(record));
            self.changes.lock().unwrap().push(change);
        });
        Box::pin(async { written })
    }

    fn forget(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<(), LogError>> {
        let forgotten = self.check().map(|()| {
            self.records.lock().unwrap().remove(key);
        });
        Box::pin(async { forgotten })
    }

    fn owner_exists(&self, record: &WorkspaceRecord) -> BoxFuture<'_, Result<bool, LogError>> {
        let exists = self.check().map(|()| !self.gone.lock().unwrap().contains(&record.session_id));
        Box::pin(async { exists })
    }

    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::SeqCst))
    }
}

/// A manager with the real virtual backend.
pub(crate) struct Rig {
    pub(crate) home: Arc<TempDir>,
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) manager: WorkspaceManager,
}

pub(crate) const TENANT: &str = "tn_test";

pub(crate) fn shell_command() -> ShellCommand {
    ShellCommand { program: env!("CARGO_BIN_EXE_nylorun-shell-child").into(), args: Vec::new() }
}

pub(crate) fn config(home: PathBuf) -> ManagerConfig {
    ManagerConfig {
        home,
        tenant: TenantId::from_trusted(TENANT),
        host_id: "host".to_owned(),
        preference: Preference::Auto,
        shell_command: shell_command(),
        quota: Quota::DEFAULT,
        max_live: ManagerConfig::DEFAULT_MAX_LIVE,
        lifetime: Lifetime::Durable,
    }
}

pub(crate) fn spec() -> WorkspaceSpec {
    WorkspaceSpec { image: None, cpus: 1, memory_mib: 256, network_allow: Vec::new(), idle_ms: 1_000 }
}

pub(crate) fn key(session: &str) -> WorkspaceKey {
    WorkspaceKey::of_session(&TenantId::from_trusted(TENANT), &SessionId::from_trusted(session))
}

impl Rig {
    pub(crate) fn new() -> Self {
        let log = Arc::new(MemoryLog::default());
        log.advance(1_000_000);
        Self::over(Arc::new(tempfile::tempdir().unwrap()), log)
    }

    /// Another process over the same home and records: what a restart leaves.
    pub(crate) fn restarted(&self) -> Self {
        Self::over(Arc::clone(&self.home), Arc::clone(&self.log))
    }

    /// The same home and records under other settings, as after a restart of the server.
    pub(crate) fn with(&self, change: impl FnOnce(ManagerConfig) -> ManagerConfig) -> Self {
        let config = change(config(self.home.path().to_owned()));
        let (home, log) = (Arc::clone(&self.home), Arc::clone(&self.log));
        let manager = WorkspaceManager::new(config, Arc::clone(&log) as Arc<dyn WorkspaceLog>);
        Self { home, log, manager }
    }

    /// A workspace may hold this much.
    pub(crate) fn with_quota(bytes: u64, files: u64) -> Self {
        Self::new().with(|config| ManagerConfig { quota: Quota { bytes, files }, ..config })
    }

    fn over(home: Arc<TempDir>, log: Arc<MemoryLog>) -> Self {
        let manager = WorkspaceManager::new(config(home.path().to_owned()), Arc::clone(&log) as Arc<dyn WorkspaceLog>);
        Self { home, log, manager }
    }

    /// Where the files of the session `s` are on the host.
    pub(crate) fn files(&self) -> PathBuf {
        self.root().join(key("s").as_str()).join("workspace")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("tenant/workspaces")
    }

    /// One call of the session `s`.
    pub(crate) async fn answer(&self, tool: WorkspaceTool, input: &str) -> WorkspaceAnswer {
        self.answer_until(tool, input, Abort::never()).await
    }

    pub(crate) async fn answer_until(&self, tool: WorkspaceTool, input: &str, abort: Abort) -> WorkspaceAnswer {
        self.manager.call(call("s", tool, input), abort).await
    }

    pub(crate) async fn outcome(&self, tool: WorkspaceTool, input: &str) -> ToolOutcome {
        match self.answer(tool, input).await.outcome {
            WorkspaceOutcome::Done(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// The output of a call that must complete.
    pub(crate) async fn output(&self, tool: WorkspaceTool, input: &str) -> Value {
        match self.outcome(tool, input).await {
            ToolOutcome::Completed { output } => output.value(),
            failed @ ToolOutcome::Failed { .. } => panic!("{tool:?} {input}: {failed:?}"),
        }
    }

    /// The text that a call gives.
    pub(crate) async fn text(&self, tool: WorkspaceTool, input: &str) -> String {
        self.output(tool, input).await.as_str().unwrap().to_owned()
    }

    /// The code of a call that must fail.
    pub(crate) async fn failure(&self, tool: WorkspaceTool, input: &str) -> (String, String) {
        match self.outcome(tool, input).await {
            ToolOutcome::Failed { code, message } => (code, message),
            completed @ ToolOutcome::Completed { .. } => panic!("{tool:?} {input}: {completed:?}"),
        }
    }

    /// Runs a command: exit code, standard output, standard error.
    pub(crate) async fn bash(&self, command: &str) -> (i64, String, String) {
        let output = self.output(WorkspaceTool::Bash, &bash_input(command)).await;
        exec_parts(&output)
    }

    pub(crate) async fn write(&self, path: &str, content: &str) {
        let input = object([("path", path), ("content", content)]);
        self.output(WorkspaceTool::Write, &input).await;
    }
}

pub(crate) fn exec_parts(output: &Value) -> (i64, String, String) {
    let text = |name| output.get(name).and_then(Value::as_str).unwrap().to_owned();
    (output.get("exitCode").and_then(Value::as_i64).unwrap(), text("stdout"), text("stderr"))
}

pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter().map(|(name, value)| (name, Value::from(value)));
    Value::object(members).to_json().as_str().to_owned()
}

pub(crate) fn bash_input(command: &str) -> String {
    object([("command", command)])
}

/// The run of the session's turn.
pub(crate) fn claim(session: &str) -> RunClaim {
    RunClaim { session_id: SessionId::from_trusted(session), turn_id: TurnId::from_trusted("turn"), epoch: 1 }
}

pub(crate) fn call(session: &str, tool: WorkspaceTool, input: &str) -> WorkspaceCall {
    WorkspaceCall {
        claim: Some(claim(session)),
        owner: SessionId::from_trusted(session),
        key: key(session),
        spec: spec(),
        tool,
        input: Json::parse(input).unwrap(),
    }
}

/// The events in short: `creating`, `creating reattach`, `running lost`, `stopped error`, `exec bash completed 0`.
pub(crate) fn in_short<'a>(events: impl IntoIterator<Item = &'a WorkspaceEvent>) -> Vec<String> {
    let words = |event: &WorkspaceEvent| match event {
        WorkspaceEvent::State { state, reattach, lost, error, .. } => [
            Some(state.as_str().to_owned()),
            reattach.then(|| "reattach".to_owned()),
            lost.then(|| "lost".to_owned()),
            error.as_ref().map(|_| "error".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" "),
        WorkspaceEvent::Exec { tool, exit_code, killed, outcome, code, .. } => {
            let exit = exit_code.map(|code| format!(" {code}")).unwrap_or_default();
            let code = code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
            format!("exec {} {}{code}{exit}{}", tool.as_str(), outcome.as_str(), if *killed { " killed" } else { "" })
        }
    };
    events.into_iter().map(words).collect()
}
