//! How long opening and a warm command take. The bounds are loose, since tests run beside others; the figures are
//! printed.

use std::time::{Duration, Instant};

use nylorun_domain::tool::WorkspaceTool::{Bash, Read};

use crate::support::{Rig, bash_input};

#[tokio::test]
async fn opening_and_warm_calls_are_quick() {
    let rig = Rig::new();
    let began = Instant::now();
    rig.manager.report().await;
    let probe = began.elapsed();
    let began = Instant::now();
    rig.write("a", "x").await;
    let open = began.elapsed();
    let mut bash: Vec<Duration> = Vec::new();
    let mut read: Vec<Duration> = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        rig.output(Bash, &bash_input("true")).await;
        bash.push(began.elapsed());
        let began = Instant::now();
        rig.output(Read, r#"{"path":"a"}"#).await;
        read.push(began.elapsed());
    }
    bash.sort();
    read.sort();
    println!("probe {probe:?}, open {open:?}, bash p50 {:?} p99 {:?}, read p50 {:?}", bash[100], bash[198], read[100]);
    assert!(open < Duration::from_secs(2), "{open:?}");
    assert!(bash[100] < Duration::from_millis(100), "{:?}", bash[100]);
}
