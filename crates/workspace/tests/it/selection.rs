//! Which backend holds a workspace, and what is said when none does (sandbox-and-definitions a6).

use std::sync::Arc;

use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::Bash;
use nylorun_domain::workspace::{WorkspaceRecord, WorkspaceSpec};
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{BackendReport, ProbeReport, Probed};
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceLog, WorkspaceOutcome, Workspaces};
use nylorun_workspace::{ManagerConfig, Preference, ShellCommand, WorkspaceManager};

use crate::support::{Rig, bash_input, call, config, key, spec};

fn manager(rig: &Rig, change: impl FnOnce(&mut ManagerConfig)) -> WorkspaceManager {
    let mut config = config(rig.home.path().to_owned());
    change(&mut config);
    WorkspaceManager::new(config, Arc::clone(&rig.log) as Arc<dyn WorkspaceLog>)
}

fn unavailable(answer: WorkspaceAnswer) -> String {
    match answer.outcome {
        WorkspaceOutcome::Done(ToolOutcome::Failed { code, message }) => {
            assert_eq!((code.as_str(), answer.events), ("sandbox.unavailable", Vec::new()));
            message
        }
        other => panic!("{other:?}"),
    }
}

async fn refused(manager: &WorkspaceManager) -> String {
    unavailable(manager.call(call("s", Bash, &bash_input("true")), Abort::never()).await)
}

#[tokio::test]
async fn auto_takes_what_works() {
    let rig = Rig::new();
    let report = rig.manager.report().await;
    let [ProbeReport { probed: Probed::Available { version, partial }, .. }] = &report.probes[..] else {
        panic!("{report:?}")
    };
    assert_eq!((version.starts_with("0."), partial.len()), (true, 0), "{version}");
    let expected = BackendReport {
        preference: "auto".to_owned(),
        backend: Some("virtual"),
        isolation: Some("process"),
        reason: "the first that works".to_owned(),
        probes: report.probes.clone(),
    };
    assert_eq!(report, expected);
    let left: Vec<_> = std::fs::read_dir(rig.root()).unwrap().collect();
    assert!(left.is_empty(), "the probe leaves nothing: {left:?}");
}

#[tokio::test]
async fn an_explicit_preference_never_falls_back() {
    let rig = Rig::new();
    let message = refused(&manager(&rig, |config| config.preference = Preference::parse("microvm"))).await;
    assert_eq!(
        message,
        "No workspace can be opened: this build has no backend microvm. `nylorun doctor sandbox` lists the options."
    );
    let unknown = manager(&rig, |config| config.preference = Preference::parse("docker"));
    assert_eq!(
        refused(&unknown).await,
        "No workspace can be opened: no backend is named \"docker\"; known are auto, virtual, namespace, container, \
         microvm. `nylorun doctor sandbox` lists the options."
    );
    let report = unknown.report().await;
    assert_eq!((report.preference.as_str(), report.backend, report.isolation), ("docker", None, None));
}

#[tokio::test]
async fn a_backend_whose_probe_fails_is_not_used() {
    let rig = Rig::new();
    for (program, why) in [("/nonexistent/shell", "cannot be started"), ("/bin/true", "ended before it served")] {
        let manager = manager(&rig, |config| {
            config.shell_command = ShellCommand { program: program.into(), args: Vec::new() };
        });
        assert_eq!(
            refused(&manager).await,
            "No workspace can be opened: no backend works here. `nylorun doctor sandbox` lists the options."
        );
        let Probed::Unavailable { reason } = &manager.report().await.probes[0].probed else { panic!() };
        assert!(reason.contains(why), "{reason}");
    }
}

#[tokio::test]
async fn a_workspace_keeps_the_backend_of_its_record() {
    let rig = Rig::new();
    rig.write("a", "x").await;
    let record = rig.log.get(&key("s")).unwrap();
    rig.log.put(WorkspaceRecord { backend: "container".to_owned(), ..record });
    let next = rig.restarted();
    let message = unavailable(next.answer(Bash, &bash_input("true")).await);
    assert!(message.contains("this build has no backend container"), "{message}");
    assert!(next.manager.remove(&key("s")).await.is_err());
}

#[tokio::test]
async fn what_the_backend_cannot_give_is_refused() {
    let rig = Rig::new();
    let cases: [(WorkspaceSpec, &str); 2] = [
        (WorkspaceSpec { image: Some("python".to_owned()), ..spec() }, "takes no image (python)"),
        (WorkspaceSpec { network_allow: vec!["example.com".to_owned()], ..spec() }, "has no network yet"),
    ];
    for (spec, why) in cases {
        let mut call = call("s", Bash, &bash_input("true"));
        call.spec = spec;
        let message = unavailable(rig.manager.call(call, Abort::never()).await);
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(rig.log.changes(), []);
}
