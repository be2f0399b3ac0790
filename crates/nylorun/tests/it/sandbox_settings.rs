//! The tenant's settings for workspaces from the terminal, and that they outlive the server.

use nylorun_client::OpenSession;

use crate::cli::{nylorun, ok};
use crate::database;
use crate::drill;
use crate::server::Setup;

const DEFAULTS: &str = "\
default     none
memory      1024MiB, at most 8192MiB
processors  2, at most 4
network     none
idle        15m
backend     virtual (process): the first that works
";

#[tokio::test]
async fn the_command_line_shows_and_sets_them_and_they_stay() {
    for database in database::each("sandbox_settings").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let run = |args: &[&str]| nylorun(home.path(), args);
        assert_eq!(ok(&run(&["sandbox", "show"])), DEFAULTS);

        let set = ["--default", "virtual", "--memory", "512MiB", "--network", "a.example.com", "--idle", "300s"];
        let told = ok(&run(&[&["sandbox", "set"], &set[..]].concat()));
        let expected = DEFAULTS.replace("none\nidle        15m", "a.example.com\nidle        5m");
        let expected = expected.replace("default     none", "default     virtual").replace("1024MiB,", "512MiB,");
        assert_eq!(told, expected);
        assert_eq!(ok(&run(&["sandbox", "set", "--network", "off"])), expected.replace("a.example.com", "none"));

        let wrong = run(&["sandbox", "set", "--memory", "1TiB"]);
        assert_eq!(wrong.status.code(), Some(1));
        let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(told.contains("limits.defaultResources.memory") && told.contains("8192MiB"), "{told}");
        assert_eq!(run(&["sandbox", "set"]).status.code(), Some(2));
        assert!(server.stop().success());

        let server = setup.start();
        let opened = server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it opens");
        let sandbox = opened.other.get("sandbox").expect("the default gives one");
        assert_eq!((&sandbox["resources"]["memory"], &sandbox["idle"]), (&"512MiB".into(), &"5m".into()));

        std::fs::write(home.path().join("settings.yaml"), "limits:\n  idle: 1h\n").expect("it can be written");
        let replaced = ok(&run(&["sandbox", "set", "--file", "settings.yaml"]));
        assert_eq!(replaced, DEFAULTS.replace("15m", "1h"));
        assert!(ok(&run(&["doctor", "sandbox"])).contains("backend virtual"));
        assert!(server.stop().success());
    }
}
