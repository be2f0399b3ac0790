//! No way out of the workspace's own tree: `..`, absolute paths, links, links that are swapped meanwhile.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::{Bash, Edit, Glob, Grep, Read, Write};
use nylorun_ports::workspaces::WorkspaceOutcome;
use rustix::fs::{FileType, Mode, makedev};

use crate::support::{Rig, bash_input, object};

const SECRET: &str = "the host's secret";

/// A workspace with links to a secret beside it on the host.
async fn rig_with_links() -> Rig {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let outside = rig.home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), SECRET).unwrap();
    symlink(outside.join("secret.txt"), rig.files().join("file-link")).unwrap();
    symlink(&outside, rig.files().join("dir-link")).unwrap();
    symlink("../../../../outside", rig.files().join("up-link")).unwrap();
    symlink("/etc/passwd", rig.files().join("passwd")).unwrap();
    symlink("loop", rig.files().join("loop")).unwrap();
    rig
}

fn outside(rig: &Rig) -> String {
    std::fs::read_to_string(rig.home.path().join("outside/secret.txt")).unwrap()
}

#[tokio::test]
async fn links_lead_nowhere_outside() {
    let rig = rig_with_links().await;
    let host_path = rig.home.path().join("outside/secret.txt").to_str().unwrap().to_owned();
    let paths = [
        "file-link",
        "dir-link/secret.txt",
        "up-link/secret.txt",
        "passwd",
        "../../../../outside/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        host_path.as_str(),
    ];
    for path in paths {
        assert_eq!(rig.failure(Read, &object([("path", path)])).await.0, "sandbox.not_found", "{path}");
        let edit = object([("path", path), ("old_string", "s"), ("new_string", "x")]);
        assert_eq!(rig.failure(Edit, &edit).await.0, "sandbox.not_found", "{path}");
        let (_, stdout, stderr) = rig.bash(&format!("cat {path}; head -c 100 < {path}")).await;
        assert!(!stdout.contains(SECRET) && !stdout.contains("root:"), "{path}: {stdout} {stderr}");
    }
    assert_eq!(rig.failure(Read, r#"{"path":"loop"}"#).await.0, "sandbox.error");
    let text = rig.text(Grep, r#"{"pattern":"secret|root"}"#).await;
    assert_eq!(text, "[no matches]");
    let text = rig.text(Glob, r#"{"pattern":"*secret*"}"#).await;
    assert_eq!(text, "[no files match]");
}

#[tokio::test]
async fn writes_through_links_stay_inside() {
    let rig = rig_with_links().await;
    for path in ["file-link", "dir-link/secret.txt", "up-link/secret.txt", "dir-link/new.txt"] {
        // Each lands in the shell's memory, at the path that the link names there, or is refused.
        rig.outcome(Write, &object([("path", path), ("content", "overwritten")])).await;
        rig.bash(&format!("echo overwritten > {path}; rm -rf {path}; mv seed {path}; cp /workspace/loop {path}")).await;
    }
    rig.bash("rm -rf dir-link/ up-link/* dir-link/*; chmod 000 file-link; touch -d @0 file-link").await;
    assert_eq!(outside(&rig), SECRET);
    let names: Vec<_> =
        std::fs::read_dir(rig.home.path().join("outside")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["secret.txt"]);
}

#[tokio::test]
async fn links_inside_are_followed_absolute_ones_too() {
    let rig = Rig::new();
    rig.write("real/a.txt", "x\n").await;
    assert_eq!(
        rig.bash("ln -s /workspace/real abs; ln -s real rel; ln -s rel/a.txt file; echo m > /tmp/m; ln -s /tmp/m mem")
            .await
            .0,
        0
    );
    for path in ["abs/a.txt", "rel/a.txt", "file", "/workspace/abs/../abs/a.txt"] {
        assert_eq!(rig.text(Read, &object([("path", path)])).await, "1\tx", "{path}");
        assert_eq!(rig.bash(&format!("cat {path}")).await.1, "x\n", "{path}");
    }
    assert_eq!(rig.text(Read, r#"{"path":"mem"}"#).await, "1\tm");
    rig.write("abs/b.txt", "y").await;
    assert!(rig.files().join("real/b.txt").is_file());
    // As grep -r does: a link is followed where it is named, and not where it is met.
    assert_eq!(rig.text(Grep, r#"{"pattern":"x","path":"abs"}"#).await, "abs/a.txt:1:x");
    assert_eq!(rig.text(Grep, r#"{"pattern":"x","path":"."}"#).await, "./real/a.txt:1:x");
    assert_eq!(
        rig.text(Glob, r#"{"pattern":"*.txt","path":"rel"}"#).await,
        "/workspace/rel/a.txt\n/workspace/rel/b.txt"
    );
}

#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_meanwhile_gives_nothing_away() {
    let rig = rig_with_links().await;
    rig.write("swap/secret.txt", "harmless").await;
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (files, target, done) = (rig.files(), rig.home.path().join("outside"), Arc::clone(&done));
        move || {
            while !done.load(Ordering::Relaxed) {
                // A tool may have made the directory anew meanwhile: then a step fails, and the next round is another
                // race.
                let _ = std::fs::rename(files.join("swap"), files.join("aside"));
                let _ = symlink(&target, files.join("swap"));
                let _ = std::fs::remove_file(files.join("swap"));
                let _ = std::fs::remove_dir_all(files.join("swap"));
                let _ = std::fs::rename(files.join("aside"), files.join("swap"));
            }
        }
    });
    for round in 0..300 {
        let outcome = rig.answer(Read, r#"{"path":"swap/secret.txt"}"#).await.outcome;
        if let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = outcome {
            assert_eq!(output.as_str(), r#""1\tharmless""#);
        }
        let (_, stdout, _) = rig.bash("cat swap/secret.txt; cat swap/*").await;
        assert!(!stdout.contains(SECRET), "{stdout}");
        // `harmless` is written, so that a write that followed the link would be seen.
        let write = object([("path", "swap/secret.txt"), ("content", "harmless")]);
        match rig.answer(Write, &write).await.outcome {
            WorkspaceOutcome::Done(_) => {}
            other => panic!("{round}: {other:?}"),
        }
        rig.answer(Bash, &bash_input("echo harmless > swap/new.txt; rm -f swap/new.txt")).await;
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(outside(&rig), SECRET);
    let names: Vec<_> =
        std::fs::read_dir(rig.home.path().join("outside")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["secret.txt"]);
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_never_opened() {
    let rig = Rig::new();
    rig.write("seed", "x\n").await;
    let files = std::fs::File::open(rig.files()).unwrap();
    rustix::fs::mkfifoat(&files, "pipe", Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(rig.files().join("socket")).unwrap();
    let mut special = vec!["pipe", "socket"];
    // Only a superuser can make a device; `/dev/zero` is one.
    if rustix::fs::mknodat(&files, "device", FileType::CharacterDevice, Mode::RWXU, makedev(1, 5)).is_ok() {
        special.push("device");
    }
    for name in special {
        assert_eq!(rig.failure(Read, &object([("path", name)])).await.0, "sandbox.error", "{name}");
        let write = object([("path", name), ("content", "x")]);
        assert_eq!(rig.failure(Write, &write).await.0, "sandbox.write_failed", "{name}");
        let edit = object([("path", name), ("old_string", "x"), ("new_string", "y")]);
        assert_eq!(rig.failure(Edit, &edit).await.0, "sandbox.error", "{name}");
        assert_eq!(rig.failure(Grep, &object([("pattern", "x"), ("path", name)])).await.0, "sandbox.grep_failed");
        for command in ["cat NAME", "cat < NAME", "echo x > NAME", "echo x >> NAME", "cp NAME copy", "grep x NAME"] {
            let (code, _, stderr) = rig.bash(&command.replace("NAME", name)).await;
            assert!(code != 0 && !stderr.contains("killed"), "{command} {name}: {code} {stderr}");
        }
    }
    assert_eq!(rig.text(Grep, r#"{"pattern":"x","path":"."}"#).await, "./seed:1:x");
    assert_eq!(rig.text(Glob, r#"{"pattern":"*"}"#).await, "/workspace/seed");
    assert_eq!(rig.bash("grep -r x . ; find . -type f").await.1, "./seed:x\n./seed\n");
    assert_eq!(rig.bash("rm -f pipe socket device; ls").await.1, "seed\n");
}

#[tokio::test]
async fn a_shell_makes_files_directories_and_links_only() {
    let rig = Rig::new();
    rig.write("seed", "x\n").await;
    for command in ["mkfifo pipe", "mknod pipe p", "mknod device c 1 5", "cp -a /dev/zero device"] {
        assert_ne!(rig.bash(command).await.0, 0, "{command}");
    }
    // An archive with a pipe and a device in it.
    let archive = rig.home.path().join("archive.tar");
    let made = std::process::Command::new("sh")
        .args(["-c", "mkdir in && cd in && echo x > file && mkfifo pipe && (mknod device c 1 5 || true) && tar cf ../archive.tar ."])
        .current_dir(rig.home.path())
        .status();
    assert!(made.unwrap().success());
    std::fs::rename(archive, rig.files().join("archive.tar")).unwrap();
    rig.bash("mkdir out; tar xf archive.tar -C out; ls -lR").await;
    for name in ["pipe", "device", "out/pipe", "out/device"] {
        let file_type = std::fs::symlink_metadata(rig.files().join(name)).map(|meta| meta.file_type());
        assert!(file_type.is_err() || file_type.is_ok_and(|it| it.is_file()), "{name}");
    }
}

#[tokio::test]
async fn the_workspace_itself_stays() {
    let rig = Rig::new();
    rig.write("a", "x").await;
    rig.bash("rm -rf /workspace; mv /workspace /tmp/w; rmdir /workspace").await;
    assert!(rig.files().is_dir());
    rig.write("b", "y").await;
    assert_eq!(rig.text(Read, r#"{"path":"b"}"#).await, "1\ty");
}

#[tokio::test]
async fn odd_names() {
    let rig = Rig::new();
    for name in ["a b", "ü😀", "-n", "new\nline", "*", "\\", "$(x)"] {
        rig.write(name, "x\n").await;
        assert_eq!(rig.text(Read, &object([("path", name)])).await, "1\tx", "{name:?}");
        assert!(rig.files().join(name).is_file(), "{name:?}");
    }
    let long = "x".repeat(300);
    assert_eq!(rig.failure(Write, &object([("path", long.as_str()), ("content", "")])).await.0, "sandbox.write_failed");
    let (code, message) = rig.failure(Read, r#"{"path":"a\u0000b"}"#).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("tool.invalid-arguments", "The input of read is not valid:\npath: Invalid path: must not hold NUL")
    );
}
