//! The virtual shell: exit codes, output, time limits, cancels, and scripts that run away.

use std::time::{Duration, Instant};

use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::{Bash, Read};
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::workspaces::{WorkspaceOutcome, Workspaces};

use crate::support::{Rig, bash_input, call, exec_parts, in_short, key};

fn timed(command: &str, seconds: u32) -> String {
    let members = [("command", Value::from(command)), ("timeout", Value::from(i64::from(seconds)))];
    Value::object(members).to_json().as_str().to_owned()
}

#[tokio::test]
async fn exit_codes_are_data() {
    let rig = Rig::new();
    assert_eq!(rig.bash("echo out; echo err >&2; exit 3").await, (3, "out\n".to_owned(), "err\n".to_owned()));
    assert_eq!(rig.bash("false").await.0, 1);
    assert_eq!(rig.bash("no-such-program").await.0, 127);
    let (code, _, stderr) = rig.bash("if then fi").await;
    assert_eq!((code, stderr.contains("syntax error")), (2, true), "{stderr}");
    let output = rig.output(Bash, &bash_input("true")).await;
    assert_eq!(output.to_json().as_str(), r#"{"exitCode":0,"stdout":"","stderr":""}"#);
}

#[tokio::test]
async fn the_environment_is_the_shells_own() {
    let rig = Rig::new();
    let (code, stdout, _) = rig.bash("pwd; echo \"$PATH|$HOME|$LANG|$TERM\"; env").await;
    assert_eq!(code, 0);
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[..2], ["/workspace", "/usr/local/bin:/usr/bin:/bin|/workspace|C.UTF-8|dumb"]);
    assert!(!stdout.contains("NYLORUN_") && !stdout.contains("CARGO"), "{stdout}");
}

#[tokio::test]
async fn each_command_has_a_fresh_shell_and_the_same_files() {
    let rig = Rig::new();
    assert_eq!(rig.bash("x=1; cd /tmp; echo hi > t; f() { echo f; }").await.0, 0);
    let (code, stdout, _) = rig.bash("echo \"[$x] $PWD\"; cat /tmp/t; f").await;
    assert_eq!((code, stdout.as_str()), (127, "[] /workspace\nhi\n"));
    assert_eq!(rig.text(Read, r#"{"path":"/tmp/t"}"#).await, "1\thi");
}

#[tokio::test]
async fn commands_see_what_the_tools_wrote_and_the_other_way_round() {
    let rig = Rig::new();
    rig.write("data/in.txt", "b\na\n").await;
    assert_eq!(rig.bash("sort data/in.txt > out.txt && wc -l < out.txt").await.0, 0);
    assert_eq!(rig.text(Read, r#"{"path":"out.txt"}"#).await, "1\ta\n2\tb");
    let script =
        "mkdir -p d/e && cp out.txt d/e/ && mv d/e/out.txt d/x && rm -r d/e && ln -s x d/l && cat d/l >> d/x; ls d";
    assert_eq!(rig.bash(script).await, (0, "l\nx\n".to_owned(), String::new()));
    assert_eq!(rig.text(Read, r#"{"path":"d/l"}"#).await, "1\ta\n2\tb\n3\ta\n4\tb");
}

#[tokio::test]
async fn without_an_input_a_reader_is_at_its_end() {
    let rig = Rig::new();
    assert_eq!(rig.bash("cat; read x || echo end").await, (0, "end\n".to_owned(), String::new()));
}

#[tokio::test]
async fn long_output_keeps_both_ends() {
    let rig = Rig::new();
    let output = rig.output(Bash, &bash_input("seq 1 20000; seq 1 20000 >&2")).await;
    let (code, stdout, stderr) = exec_parts(&output);
    assert_eq!((code, output.get("truncated").and_then(Value::as_bool)), (0, Some(true)));
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    let left_out = whole.len() - 30_000;
    let expected =
        format!("{}\n[… {left_out} characters left out …]\n{}", &whole[..15_000], &whole[whole.len() - 15_000..]);
    assert_eq!(stdout, expected);
    assert_eq!(stderr, expected);
}

#[tokio::test]
async fn a_time_limit_keeps_the_output_before_it() {
    let rig = Rig::new();
    let began = Instant::now();
    let answer = rig.answer(Bash, &timed("echo before; echo err >&2; sleep 1000; echo after", 1)).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = answer.outcome else { panic!("{answer:?}") };
    assert_eq!(
        output.as_str(),
        r#"{"exitCode":124,"stdout":"before\n","stderr":"err\n[killed after 1 second]\n","timedOut":true}"#
    );
    assert_eq!(in_short(&answer.events), ["exec bash completed 124 killed"]);
    assert_eq!(rig.bash("echo still here").await.1, "still here\n");
}

#[tokio::test]
async fn runaway_scripts_end_at_their_limit() {
    let rig = Rig::new();
    for command in [
        "while true; do :; done",
        "while :; do echo x; done",
        "sleep 1000 & sleep 1000",
        "while :; do yes; done | cat",
        "awk 'BEGIN { while (1) x++ }'",
    ] {
        let output = rig.output(Bash, &timed(command, 1)).await;
        let (code, stdout, stderr) = exec_parts(&output);
        assert_eq!((code, stderr.ends_with("[killed after 1 second]\n")), (124, true), "{command}: {stderr}");
        assert!(stdout.len() < 31_000, "{command}: {}", stdout.len());
    }
    assert_eq!(rig.bash("echo still here").await.1, "still here\n");
}

#[tokio::test]
async fn endless_recursion_ends_with_an_exit_code() {
    let rig = Rig::new();
    for command in [
        "f(){ f; }; f",
        "f(){ f | f & }; f",
        "f(){ (f); }; f",
        "f(){ x=$(f); }; f",
        "eval_it(){ eval eval_it; }; eval_it",
    ] {
        let answer = rig.answer(Bash, &timed(command, 2)).await;
        match answer.outcome {
            WorkspaceOutcome::Done(ToolOutcome::Completed { .. }) => {}
            // The stack overflowed: that child alone is gone, and the answer is lost.
            WorkspaceOutcome::Uncertain { .. } => {}
            other => panic!("{command}: {other:?}"),
        }
        assert_eq!(rig.bash("echo still here").await.1, "still here\n");
    }
}

#[tokio::test]
async fn deep_nesting_and_huge_globs_do_not_take_the_server_down() {
    let rig = Rig::new();
    let deep = format!("echo {}x{}", "$(echo ".repeat(2_000), ")".repeat(2_000));
    let parens = format!("{}true{}", "( ".repeat(20_000), " )".repeat(20_000));
    let braces = "echo {1..100000}{1..100000} | wc -c".to_owned();
    let memory = "x=x; while :; do x=$x$x; done".to_owned();
    for command in [deep, parens, braces, memory] {
        let answer = rig.answer(Bash, &timed(&command, 5)).await;
        let shown = &command[..20];
        assert!(!matches!(answer.outcome, WorkspaceOutcome::Aborted), "{shown}");
        assert_eq!(rig.bash("echo still here").await.1, "still here\n", "{shown}");
    }
    let (code, stdout, _) =
        rig.bash("mkdir many; cd many; for i in {1..2000}; do : > f$i; done; echo *1* | wc -w").await;
    assert_eq!((code, stdout.trim()), (0, "1271"));
}

#[tokio::test]
async fn a_long_script_is_read_whole() {
    let rig = Rig::new();
    let lines: String = (0..20_000).map(|n| format!("line {n} of a document\n")).collect();
    let (code, _, stderr) = rig.bash(&format!("cat > doc.txt <<'END'\n{lines}END\n")).await;
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(rig.files().join("doc.txt")).unwrap(), lines);
    let script: String = (0..5_000).map(|n| format!("echo {n} > /dev/null\n")).collect();
    assert_eq!(rig.bash(&format!("{script}echo end")).await, (0, "end\n".to_owned(), String::new()));
}

#[tokio::test]
async fn many_commands_run_at_once() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let mut running = tokio::task::JoinSet::new();
    for n in 0..40 {
        let mut call = call(&format!("session-{n}"), Bash, &bash_input(&format!("sleep 0.3; echo {n}")));
        call.key = key("s");
        let manager = rig.manager.clone();
        running.spawn(async move { (n, manager.call(call, Abort::never()).await.outcome) });
    }
    for (n, outcome) in running.join_all().await {
        let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = outcome else { panic!("{n}: {outcome:?}") };
        assert_eq!(exec_parts(&output.value()), (0, format!("{n}\n"), String::new()));
    }
}

#[tokio::test]
async fn a_cancel_kills_a_running_command() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let (handle, abort) = abort_pair();
    let input = bash_input("echo started > started; sleep 600; echo late > late");
    let running = rig.answer_until(Bash, &input, abort);
    let cancel = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
        handle.abort(AbortKind::Cancel);
    };
    let began = Instant::now();
    let (answer, ()) = tokio::join!(running, cancel);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(answer.outcome, WorkspaceOutcome::Aborted);
    assert_eq!(in_short(&answer.events), ["exec bash failed cancelled 130 killed"]);
    assert_eq!(rig.bash("ls").await.1, "seed\nstarted\n");
}

#[tokio::test]
async fn a_shutdown_alone_lets_a_running_command_end_and_its_deadline_kills_it() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let (handle, abort) = abort_pair();
    let input = bash_input("echo > started; while [ ! -e go ]; do sleep 0.01; done; echo done");
    let go = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
        handle.abort(AbortKind::Shutdown);
        std::fs::write(rig.files().join("go"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(rig.answer_until(Bash, &input, abort), go);
    assert!(matches!(answer.outcome, WorkspaceOutcome::Done(ToolOutcome::Completed { .. })), "{answer:?}");

    let (handle, abort) = abort_pair();
    let input = bash_input("echo > again; sleep 600");
    let stop = async {
        while !rig.files().join("again").exists() {
            tokio::task::yield_now().await;
        }
        handle.abort(AbortKind::Shutdown);
        handle.abort(AbortKind::Deadline);
    };
    let (answer, ()) = tokio::join!(rig.answer_until(Bash, &input, abort), stop);
    assert_eq!(answer.outcome, WorkspaceOutcome::Aborted);
}

#[tokio::test]
async fn a_call_that_is_aborted_before_it_begins_makes_nothing() {
    let rig = Rig::new();
    let (handle, abort) = abort_pair();
    handle.abort(AbortKind::Cancel);
    let answer = rig.answer_until(Bash, &bash_input("true"), abort).await;
    assert_eq!((answer.outcome, answer.events), (WorkspaceOutcome::Aborted, Vec::new()));
    assert_eq!(rig.log.changes(), []);
}

#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let input = bash_input("echo > started; sleep 3; echo > late");
    let started = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = rig.answer(Bash, &input) => panic!("it ended"),
        () = started => {}
    }
    // The lane is free at once, and the shell still serves.
    assert_eq!(rig.bash("sleep 3.5; ls").await.1, "seed\nstarted\n");
}

#[tokio::test]
async fn a_device_without_an_end_gives_what_was_asked_for_or_an_error() {
    let rig = Rig::new();
    for (command, bytes) in [
        ("head -c 3000000 /dev/zero", 3_000_000),
        ("head -c 3MB /dev/urandom", 3_000_000),
        ("head --bytes=100k /dev/random", 102_400),
        ("head -c 10 seed /dev/zero -q", 15),
        ("dd if=/dev/zero bs=1M count=3 2> /dev/null", 3 << 20),
        ("tr -dc a-z < /dev/urandom | head -c 16", 16),
    ] {
        rig.write("seed", "seed\n").await;
        assert_eq!(rig.bash(&format!("{command} > f; wc -c < f")).await.1, format!("{bytes}\n"), "{command}");
    }
    for command in [
        "cat /dev/zero > g",
        "tr x y < /dev/zero > g",
        "cp /dev/zero g",
        "head -n 3 /dev/zero > g",
        "head -c 3G /dev/urandom > g",
    ] {
        let (code, _, stderr) = rig.bash(command).await;
        assert!(
            code != 0 && (stderr.contains("has no end") || stderr.contains("at most 256 MiB")),
            "{command}: {stderr}"
        );
    }
    assert_eq!(rig.bash("echo x > /dev/zero; [ -c /dev/zero ] && ls /dev").await.0, 0);
}

#[tokio::test]
async fn no_list_is_cut_without_an_error() {
    let rig = Rig::new();
    rig.write("many/seed", "").await;
    (0..12_000).for_each(|n| std::fs::write(rig.files().join(format!("many/f{n}")), "").unwrap());
    assert_eq!(
        rig.bash("cd many; echo * | wc -w; ls | wc -l; find . -type f | wc -l").await.1,
        "12001\n12001\n12001\n"
    );
    std::fs::write(rig.files().join("words"), "word\n".repeat(300_000)).unwrap();
    let lists = "set -- $(cat words); echo $#; a=($(cat words)); echo ${#a[@]}; mapfile -t b < words; echo ${#b[@]}";
    assert_eq!(rig.bash(lists).await.1, "300000\n".repeat(3));
    std::fs::write(rig.files().join("words"), "w\n".repeat(1_000_001)).unwrap();
    let (code, stdout, stderr) = rig.bash("set -- $(cat words); echo $#").await;
    assert_eq!((code, stdout.as_str(), stderr.contains("limit (1000000) exceeded")), (1, "", true), "{stderr}");
}
