//! What a workspace may hold on disk.

use std::os::unix::fs::symlink;

use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::{Bash, Edit, Read, Write};
use nylorun_ports::abort::Abort;
use nylorun_ports::workspaces::{WorkspaceOutcome, Workspaces};
use nylorun_workspace::{ManagerConfig, Quota};

use crate::manager::children;
use crate::support::{Rig, bash_input, call, exec_parts, object};

const MIB: u64 = 1 << 20;

/// The blocks of 4 KiB that still fit, found out by filling them; none is left behind.
async fn room(rig: &Rig) -> i64 {
    let fill = "n=0; while head -c 4096 /dev/zero > fill-$n; do n=$((n+1)); done; rm -f fill-*; echo $n";
    let (code, stdout, stderr) = rig.bash(fill).await;
    assert!(code == 0 && stderr.contains("No space left on device"), "{stderr}");
    stdout.trim().parse().unwrap()
}

/// Has the workspace opened anew by the next call.
async fn stop(rig: &Rig) {
    rig.manager.stop_idle(rig.log.advance(1_000_000)).await;
    assert_eq!(children(rig).len(), 0);
}

/// Bytes of all files of the session `s` on the host.
fn bytes_on_host(rig: &Rig) -> u64 {
    let entries = std::fs::read_dir(rig.files()).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn a_full_workspace_refuses_to_grow_and_takes_more_when_something_is_removed() {
    let rig = Rig::with_quota(MIB, 1_000);
    rig.write("old", "kept\n").await;
    let serving = children(&rig);
    let fill = "i=0; while head -c 100000 /dev/zero > f$i; do i=$((i+1)); done; echo $i; ls f* | wc -l";
    let (_, stdout, stderr) = rig.bash(fill).await;
    assert_eq!(stdout, "10\n10\n");
    assert_eq!(stderr, "bash: line 1: f10: No space left on device (the workspace's quota is 1 MiB)\n");
    for grow in [
        "head -c 60000 /dev/zero > new",
        "head -c 60000 /dev/zero >> f1",
        "cp f1 f2x",
        "head -c 60000 /dev/zero | tee new",
    ] {
        let (code, _, stderr) = rig.bash(grow).await;
        assert!(code == 1 && stderr.contains("No space left on device"), "{grow}: {code} {stderr}");
    }
    let content = "x".repeat(60_000);
    let (code, message) = rig.failure(Write, &object([("path", "new"), ("content", &content)])).await;
    assert_eq!(code, "sandbox.write_failed");
    assert_eq!(message, "/workspace/new cannot be written: No space left on device (the workspace's quota is 1 MiB)");
    let edit = object([("path", "old"), ("old_string", "kept"), ("new_string", &content)]);
    assert_eq!(rig.failure(Edit, &edit).await.0, "sandbox.write_failed");
    // What was refused changed nothing.
    assert_eq!((rig.text(Read, r#"{"path":"old"}"#).await.as_str(), bytes_on_host(&rig)), ("1\tkept", 1_000_005));

    let other = call("other", Bash, &bash_input("head -c 900000 /dev/zero > f && wc -c < f"));
    let answer = rig.manager.call(other, Abort::never()).await;
    let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = answer.outcome else { panic!("{answer:?}") };
    assert_eq!(exec_parts(&output.value()), (0, "900000\n".to_owned(), String::new()));

    assert_eq!(rig.bash("rm f1; head -c 90000 /dev/zero > new; wc -c < new").await.1, "90000\n");
    rig.write("old", "kept here").await;
    // The same process has served all of it.
    assert!(serving.iter().all(|child| children(&rig).contains(child)));
}

#[tokio::test]
async fn the_number_of_files_is_limited_too() {
    let rig = Rig::with_quota(MIB, 10);
    let (_, stdout, stderr) = rig.bash("for i in {1..20}; do touch f$i || break; done; ls | wc -l").await;
    assert_eq!(stdout.trim(), "10");
    assert!(stderr.contains("No space left on device (the workspace's quota is 10 files, directories and links)"));
    for make in ["mkdir d", "ln -s f1 l", "cp f1 g"] {
        let (code, _, stderr) = rig.bash(make).await;
        assert!(code == 1 && stderr.contains("No space left on device"), "{make}: {code} {stderr}");
    }
    assert_eq!(rig.failure(Write, r#"{"path":"d/f","content":""}"#).await.0, "sandbox.write_failed");
    // What is there may be written, renamed and replaced.
    assert_eq!(rig.bash("echo x > f1; mv f1 f2; mkdir d; mkdir -p d; echo y > d/f; ls | wc -l").await.1, "10\n");
    assert_eq!(rig.bash("echo y > g").await.0, 1);
}

#[tokio::test]
async fn the_account_is_that_of_the_tree_whatever_was_done() {
    let rig = Rig::with_quota(MIB, 1_000);
    let script = r"
        for i in {1..9}; do head -c $((i * 3000)) /dev/zero > f$i; done
        head -c 5000 /dev/zero >> f1; : >> f1; echo x >> f9; head -c 100 /dev/zero > f8; : > f7
        mv f2 f3; mv f4 f4; cp f5 f6; cp f5 new; mkdir -p a/b/c; cp f5 a/b/c/; mv a/b z; mkdir e1 e2; mv -T e1 e2
        ln -s f1 link; ln -s f9 link2; rm link2; mv link link3; echo y >> link3; sed -i s/x/yy/ f9
        tar czf t.tgz f1 f5 z; mkdir out; tar xzf t.tgz -C out; rm -r out/z; split -b 1000 f5 part; gzip f6
        rm -rf nothing; rmdir z; mkdir z; rm z; cp nothing f1; mv nothing f1; touch f1 t; chmod 600 t; rm -r a
        head -c 2000000 /dev/zero > big; mv f1 z/c/none/x; exec 3> three; echo three >&3; echo four > z/four";
    rig.bash(script).await;
    rig.write("deep/er/w", "w").await;
    rig.output(Edit, r#"{"path":"deep/er/w","old_string":"w","new_string":"ww"}"#).await;
    let before = room(&rig).await;
    assert!((1..250).contains(&before), "{before}");
    stop(&rig).await;
    assert_eq!(room(&rig).await, before);
}

#[tokio::test]
async fn many_who_write_at_once_stay_within_the_quota() {
    let rig = Rig::with_quota(MIB, 1_000);
    rig.write("seed", "").await;
    let mut running = tokio::task::JoinSet::new();
    for n in 0..8 {
        let script = format!(
            "for i in {{1..20}}; do head -c 30000 /dev/zero > mine-{n}-$i; head -c 9000 /dev/zero > ours; \
             head -c 500 /dev/zero >> log; cp ours theirs-$((i % 3)); mv theirs-$((i % 3)) moved; rm -f mine-{n}-$((i-2)); done"
        );
        let mut call = call(&format!("session-{n}"), Bash, &bash_input(&script));
        call.key = crate::support::key("s");
        let manager = rig.manager.clone();
        running.spawn(async move { manager.call(call, Abort::never()).await });
    }
    running.join_all().await;
    assert!(bytes_on_host(&rig) <= MIB, "{}", bytes_on_host(&rig));
    let before = room(&rig).await;
    stop(&rig).await;
    assert_eq!(room(&rig).await, before);
}

#[tokio::test]
async fn what_was_there_before_counts_and_what_is_removed_from_outside_gives_room_at_the_next_opening() {
    let rig = Rig::with_quota(MIB, 1_000);
    rig.write("seed", "").await;
    stop(&rig).await;
    std::fs::create_dir(rig.files().join("dir")).unwrap();
    std::fs::write(rig.files().join("dir/outside"), vec![0; 900_000]).unwrap();
    // A process that was killed left half of a file; another name is the user's own.
    std::fs::write(rig.files().join("dir/.nylorun-unfinished-1-2-3"), vec![0; 500_000]).unwrap();
    symlink(rig.home.path(), rig.files().join("home")).unwrap();
    assert_eq!(rig.bash("head -c 200000 /dev/zero > f").await.0, 1);
    assert_eq!(rig.bash("head -c 100000 /dev/zero > f").await.0, 0);
    assert_eq!(rig.bash("ls -A dir").await.1, "outside\n");
    std::fs::remove_file(rig.files().join("dir/outside")).unwrap();
    stop(&rig).await;
    assert_eq!(rig.bash("head -c 200000 /dev/zero > f").await.0, 0);
}

#[tokio::test]
async fn what_no_path_reaches_counts_too() {
    let rig = Rig::with_quota(MIB, 1_000);
    let script = r"
        name=$(printf 'n%.0s' {1..200}); deep=.; for i in {1..18}; do deep=$deep/$name; done
        mkdir -p $deep one two; head -c 700000 /dev/zero > $deep/f; mv $name one/
        mkdir -p $deep; mv one $deep/; mv $name two/; ls";
    assert_eq!(rig.bash(script).await, (0, "two\n".to_owned(), String::new()));
    let before = room(&rig).await;
    stop(&rig).await;
    assert_eq!(room(&rig).await, before);
    assert!(before < 60, "{before}");
}

#[tokio::test]
async fn what_a_command_took_the_permissions_of_counts_too() {
    let rig = Rig::with_quota(MIB, 1_000);
    rig.bash("mkdir -p a/b; head -c 700000 /dev/zero > a/b/f; chmod 000 a/b/f a/b a; chmod 000 /workspace").await;
    let before = room(&rig).await;
    stop(&rig).await;
    assert_eq!(room(&rig).await, before);
    assert!(before < 90, "{before}");
}

#[tokio::test]
async fn above_a_quota_that_was_lowered_one_can_only_shrink() {
    let rig = Rig::with_quota(MIB, 1_000);
    rig.bash("for i in 1 2 3 4; do head -c 200000 /dev/zero > f$i; done").await;
    stop(&rig).await;
    let rig = rig.with(|config| ManagerConfig { quota: Quota { bytes: 500_000, files: 2 }, ..config });
    assert_eq!(rig.bash("echo x > new").await.0, 1);
    assert_eq!(rig.bash("echo x >> f1; mv f1 f2 && head -c 100 /dev/zero > f2 && rm f3 && ls").await.1, "f2\nf4\n");
    assert_eq!(rig.bash("rm f4; echo x > new").await.0, 0);
}

#[tokio::test]
async fn a_file_has_a_largest_size_and_never_loses_what_it_has() {
    let rig = Rig::new();
    rig.write("big", "").await;
    let size = 256 * MIB;
    std::fs::File::options().write(true).open(rig.files().join("big")).unwrap().set_len(size).unwrap();
    let (code, _, stderr) = rig.bash("echo x >> big").await;
    assert_eq!(code, 1);
    assert_eq!(stderr, "bash: line 1: big: File too large (a file of a workspace has at most 256 MiB)\n");
    assert_eq!(std::fs::metadata(rig.files().join("big")).unwrap().len(), size);
}
