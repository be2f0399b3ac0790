//! The real binary with its harness behind the Harness API: every frame printed, checked and read. Its records are
//! those of a runtime that reaches its harness by reference.

use std::path::Path;

use nylorun_client::{Client, Follow, Update};

use crate::drill::{self, Record};
use crate::server::Setup;

/// How long the model takes, so that there is time to end the server in between.
const DELAY_MS: u64 = 20;

/// Turns with tools, a question, a compaction, a message that waits and a cancel, in segments of two model calls.
fn setup(home: &Path, harness: &str) -> Setup {
    Setup::new(home).with("NYLORUN_YIELD_STEPS", "2").with("NYLORUN_HARNESS", harness)
}

async fn undisturbed(harness: &str) -> Record {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = setup(home.path(), harness).start();
    drill::prepare(&server).await.expect("it is undisturbed");
    drill::begin(&server.client(), "calm", &drill::script(DELAY_MS)).await.expect("it is undisturbed");
    drill::see_to_its_end(&server.client(), home.path(), "calm").await.expect("it is undisturbed");
    let events = server.client().session("calm").history(None, None).await.expect("it is undisturbed").items;
    assert!(server.stop().success(), "a clean stop exits with 0");
    Record::of(&events)
}

#[tokio::test]
async fn turns_over_frames_leave_the_record_of_turns_by_reference() {
    assert_eq!(undisturbed("json").await, undisturbed("in-process").await);
}

#[tokio::test]
async fn a_turn_over_frames_is_replayed_after_a_crash() {
    let expected = undisturbed("in-process").await;
    // After the first tool of the first segment, and after the first of the second.
    for tools in [1, 4] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = setup(home.path(), "json");
        let mut server = setup.start();
        drill::prepare(&server).await.expect("nothing disturbs it yet");
        drill::begin(&server.client(), "crashed", &drill::script(DELAY_MS)).await.expect("nothing disturbs it yet");
        until_tools(&server.client(), tools).await;
        server.kill();
        let server = setup.start();
        drill::see_to_its_end(&server.client(), home.path(), "crashed").await.expect("nothing crashes any more");
        drill::check(&server.client(), home.path(), "crashed", &expected).await;
        assert!(server.stop().success(), "a clean stop exits with 0");
    }
}

/// Follows the session until so many tools were called; answers on the way what is asked.
async fn until_tools(client: &Client, number: usize) {
    let mut events = client.session("crashed").events(Follow::default());
    let mut seen = 0;
    while seen < number {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.kind == "tool.completed" => seen += 1,
            Update::Event(event) if event.kind == "turn.paused" => {
                drill::deny(client, "crashed", &event).await.expect("it is asked");
            }
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

#[tokio::test]
async fn a_stop_gives_the_turn_to_the_next_process() {
    let expected = undisturbed("in-process").await;
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = setup(home.path(), "json");
    let server = setup.start();
    drill::prepare(&server).await.expect("nothing disturbs it yet");
    drill::begin(&server.client(), "crashed", &drill::script(DELAY_MS)).await.expect("nothing disturbs it yet");
    until_tools(&server.client(), 1).await;
    assert!(server.stop().success(), "a clean stop exits with 0");
    let server = setup.start();
    drill::see_to_its_end(&server.client(), home.path(), "crashed").await.expect("nothing crashes any more");
    drill::check(&server.client(), home.path(), "crashed", &expected).await;
}
