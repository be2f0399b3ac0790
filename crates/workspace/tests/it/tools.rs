//! Every line of the tools' table (sandbox-and-definitions a2, a3; decisions, Workspaces).

use nylorun_domain::json::{Value, parse};
use nylorun_domain::tool::WorkspaceTool::{Bash, Edit, Glob, Grep, Read, Write};

use crate::support::{Rig, object};

fn json(text: &str) -> Value {
    parse(text).unwrap()
}

#[tokio::test]
async fn read_numbers_lines_from_one() {
    let rig = Rig::new();
    rig.write("a.txt", "one\ntwo\r\n\nfour").await;
    assert_eq!(rig.text(Read, r#"{"path":"a.txt"}"#).await, "1\tone\n2\ttwo\r\n3\t\n4\tfour");
    assert_eq!(
        rig.text(Read, r#"{"path":"a.txt","offset":2,"limit":1}"#).await,
        "2\ttwo\r\n[2 more lines; continue with offset 3]"
    );
    assert_eq!(
        rig.text(Read, r#"{"path":"a.txt","offset":3,"limit":1}"#).await,
        "3\t\n[1 more line; continue with offset 4]"
    );
    assert_eq!(rig.text(Read, r#"{"path":"a.txt","offset":5}"#).await, "");
    assert_eq!(rig.text(Read, r#"{"path":"a.txt","offset":9007199254740991,"limit":5000}"#).await, "");
}

#[tokio::test]
async fn read_pads_numbers_to_the_last_one_shown() {
    let rig = Rig::new();
    let lines: String = (1..=12).map(|n| format!("l{n}\n")).collect();
    rig.write("/workspace/a.txt", &lines).await;
    assert_eq!(
        rig.text(Read, r#"{"path":"a.txt","offset":8,"limit":3}"#).await,
        " 8\tl8\n 9\tl9\n10\tl10\n[2 more lines; continue with offset 11]"
    );
    assert_eq!(
        rig.text(Read, r#"{"path":"a.txt","offset":8,"limit":2}"#).await,
        "8\tl8\n9\tl9\n[3 more lines; continue with offset 10]"
    );
}

#[tokio::test]
async fn read_of_an_empty_file_and_of_a_lone_line_end() {
    let rig = Rig::new();
    rig.write("empty", "").await;
    rig.write("newline", "\n").await;
    assert_eq!(rig.text(Read, r#"{"path":"empty"}"#).await, "[/workspace/empty is an empty file]");
    assert_eq!(rig.text(Read, r#"{"path":"newline"}"#).await, "1\t");
    assert_eq!(rig.text(Read, r#"{"path":"newline","offset":2}"#).await, "");
}

#[tokio::test]
async fn read_cuts_long_lines_in_utf16_units() {
    let rig = Rig::new();
    rig.write("a", &format!("{}\n{}\nend", "x".repeat(2_001), "😀".repeat(1_001))).await;
    let expected = format!("1\t{}…\n2\t{}…\n3\tend", "x".repeat(2_000), "😀".repeat(1_000));
    assert_eq!(rig.text(Read, r#"{"path":"a"}"#).await, expected);
}

#[tokio::test]
async fn read_stops_at_256_kib_and_says_how_to_go_on() {
    let rig = Rig::new();
    let line = "x".repeat(1_000);
    rig.write("a", &format!("{line}\n").repeat(400)).await;
    let text = rig.text(Read, r#"{"path":"a"}"#).await;
    assert!(text.len() <= 256 * 1024 + 100, "{}", text.len());
    let shown = text.lines().count() - 1;
    assert!(shown > 250, "{shown}");
    let last = format!("[{} more lines; continue with offset {}]", 400 - shown, shown + 1);
    assert_eq!(text.lines().last(), Some(last.as_str()));
    // A short line after the one that did not fit is not shown in its place.
    let rest = rig.text(Read, &format!(r#"{{"path":"a","offset":{}}}"#, shown + 1)).await;
    assert_eq!(rest.lines().count(), 400 - shown);
}

#[tokio::test]
async fn read_says_what_is_not_text() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    std::fs::write(rig.files().join("bad"), b"a\xffb\n").unwrap();
    std::fs::write(rig.files().join("binary"), b"\x7fELF\0\0").unwrap();
    assert_eq!(
        rig.text(Read, r#"{"path":"bad"}"#).await,
        "1\ta\u{fffd}b\n[bytes that are not UTF-8 are shown as U+FFFD]"
    );
    assert_eq!(rig.text(Read, r#"{"path":"binary"}"#).await, "[/workspace/binary is a binary file and is not shown]");
}

#[tokio::test]
async fn read_of_what_is_no_file() {
    let rig = Rig::new();
    rig.write("dir/file", "x").await;
    for path in ["none", "dir/file/below", "none/below", "/etc/passwd", "/nowhere"] {
        let (code, _) = rig.failure(Read, &object([("path", path)])).await;
        assert_eq!(code, "sandbox.not_found", "{path}");
    }
    let (code, message) = rig.failure(Read, r#"{"path":"dir"}"#).await;
    assert_eq!((code.as_str(), message.as_str()), ("sandbox.not_found", "/workspace/dir is a directory, not a file."));
}

#[tokio::test]
async fn write_makes_parents_and_answers_an_absolute_path_and_bytes() {
    let rig = Rig::new();
    let output = rig.output(Write, r#"{"path":"a/b/../c.txt","content":"é😀"}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a/c.txt","bytes":6}"#));
    assert_eq!(std::fs::read_to_string(rig.files().join("a/c.txt")).unwrap(), "é😀");
    let output = rig.output(Write, r#"{"path":"/workspace/a/c.txt","content":""}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a/c.txt","bytes":0}"#));
    assert_eq!(std::fs::read(rig.files().join("a/c.txt")).unwrap(), b"");
    // Outside the workspace: in the shell's memory.
    let output = rig.output(Write, r#"{"path":"/data/x","content":"1"}"#).await;
    assert_eq!(output, json(r#"{"path":"/data/x","bytes":1}"#));
    assert_eq!(rig.bash("cat /data/x").await, (0, "1".to_owned(), String::new()));
}

#[tokio::test]
async fn write_that_cannot_be_done_changes_nothing() {
    let rig = Rig::new();
    rig.write("file", "kept").await;
    let (code, message) = rig.failure(Write, r#"{"path":"file/below","content":"x"}"#).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("sandbox.write_failed", "/workspace/file cannot be made a directory: not a directory")
    );
    rig.write("dir/x", "").await;
    let (code, message) = rig.failure(Write, r#"{"path":"dir","content":"x"}"#).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("sandbox.write_failed", "/workspace/dir cannot be written: is a directory")
    );
    let names: Vec<_> = std::fs::read_dir(rig.files())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(std::fs::read_to_string(rig.files().join("file")).unwrap(), "kept");
}

#[tokio::test]
async fn write_keeps_the_mode_of_what_it_replaces() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    rig.write("run.sh", "echo old").await;
    assert_eq!(rig.bash("chmod 755 run.sh").await.0, 0);
    rig.write("run.sh", "echo new").await;
    assert_eq!(std::fs::metadata(rig.files().join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(rig.bash("./run.sh").await, (0, "new\n".to_owned(), String::new()));
}

#[tokio::test]
async fn edit_replaces_literally() {
    let rig = Rig::new();
    rig.write("a", "x.*y $1 x.*y").await;
    let output = rig.output(Edit, r#"{"path":"a","old_string":" $1 ","new_string":"[.*]"}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a","replacements":1}"#));
    let output = rig.output(Edit, r#"{"path":"a","old_string":"x.*y","new_string":"$0\\1","replace_all":true}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a","replacements":2}"#));
    assert_eq!(std::fs::read_to_string(rig.files().join("a")).unwrap(), "$0\\1[.*]$0\\1");
}

#[tokio::test]
async fn edit_refuses_and_changes_nothing() {
    let rig = Rig::new();
    rig.write("a", "aaa\r\nb").await;
    for (input, code) in [
        (r#"{"path":"none","old_string":"a","new_string":"b"}"#, "sandbox.not_found"),
        (r#"{"path":"a","old_string":"a","new_string":"a"}"#, "sandbox.edit_noop"),
        (r#"{"path":"a","old_string":"zz","new_string":"b"}"#, "sandbox.edit_no_match"),
        (r#"{"path":"a","old_string":"a\n","new_string":"b"}"#, "sandbox.edit_no_match"),
    ] {
        assert_eq!(rig.failure(Edit, input).await.0, code, "{input}");
    }
    let (code, message) = rig.failure(Edit, r#"{"path":"a","old_string":"a","new_string":"b"}"#).await;
    assert_eq!(code, "sandbox.edit_not_unique");
    assert!(message.contains("3 times"), "{message}");
    assert_eq!(std::fs::read_to_string(rig.files().join("a")).unwrap(), "aaa\r\nb");
    // Matches do not overlap, and bytes that are not UTF-8 stay as they are.
    std::fs::write(rig.files().join("a"), b"\xffaaa\xfe").unwrap();
    let output = rig.output(Edit, r#"{"path":"a","old_string":"aa","new_string":"","replace_all":true}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a","replacements":1}"#));
    assert_eq!(std::fs::read(rig.files().join("a")).unwrap(), b"\xffa\xfe");
}

#[tokio::test]
async fn grep_prints_paths_as_given_in_the_order_of_their_bytes() {
    let rig = Rig::new();
    for path in ["b.txt", "a/z.txt", "a.txt", "a-b/x.txt", ".hidden"] {
        rig.write(path, "no\nneedle here\n").await;
    }
    let lines = |prefix: &str| {
        [".hidden", "a-b/x.txt", "a.txt", "a/z.txt", "b.txt"]
            .map(|path| format!("{prefix}{path}:2:needle here"))
            .join("\n")
    };
    assert_eq!(rig.text(Grep, r#"{"pattern":"needle"}"#).await, lines("/workspace/"));
    assert_eq!(rig.text(Grep, r#"{"pattern":"needle","path":"."}"#).await, lines("./"));
    assert_eq!(rig.text(Grep, r#"{"pattern":"needle","path":"./"}"#).await, lines("./"));
    assert_eq!(rig.text(Grep, r#"{"pattern":"^needle","path":"a"}"#).await, "a/z.txt:2:needle here");
    assert_eq!(rig.text(Grep, r#"{"pattern":"no$","path":"a.txt"}"#).await, "a.txt:1:no");
}

#[tokio::test]
async fn grep_options() {
    let rig = Rig::new();
    rig.write("src/a.rs", "Needle\nneedle\nneedle\n").await;
    rig.write("src/deep/b.txt", "NEEDLE\n").await;
    assert_eq!(
        rig.text(Grep, r#"{"pattern":"needle","path":"src","ignore_case":true,"glob":"*.txt"}"#).await,
        "src/deep/b.txt:1:NEEDLE"
    );
    assert_eq!(
        rig.text(Grep, r#"{"pattern":"needle","path":"src","max_results":1}"#).await,
        "src/a.rs:2:needle\n[the first 1 matches; there are more: narrow pattern, path or glob]"
    );
    assert_eq!(
        rig.text(Grep, r#"{"pattern":"needle","path":"src","max_results":2}"#).await,
        "src/a.rs:2:needle\nsrc/a.rs:3:needle"
    );
    assert_eq!(rig.text(Grep, r#"{"pattern":"n(e){2}d","path":"src","glob":"*.{rs,py}"}"#).await.lines().count(), 2);
    assert_eq!(rig.text(Grep, r#"{"pattern":"absent"}"#).await, "[no matches]");
    assert_eq!(rig.text(Grep, r#"{"pattern":"needle","glob":"*.md"}"#).await, "[no matches]");
}

#[tokio::test]
async fn grep_failures_and_what_is_not_text() {
    let rig = Rig::new();
    rig.write("a", "x\n").await;
    for (input, message) in [
        (r#"{"pattern":"x","path":"none"}"#, "none: No such file or directory"),
        (r#"{"pattern":"(x"}"#, "pattern: Unmatched ( or \\("),
        (r#"{"pattern":"(x)\\1"}"#, "pattern: Back-references (\\1) are not supported; write the repeated text out"),
    ] {
        assert_eq!(rig.failure(Grep, input).await, ("sandbox.grep_failed".to_owned(), message.to_owned()));
    }
    std::fs::write(rig.files().join("binary"), b"\0\0x\nx\n").unwrap();
    std::fs::write(rig.files().join("latin"), b"caf\xe9 x\n").unwrap();
    assert_eq!(
        rig.text(Grep, r#"{"pattern":"x","path":"."}"#).await,
        "./a:1:x\n./binary: binary file matches\n./latin:1:caf\u{fffd} x"
    );
}

#[tokio::test]
async fn grep_cuts_lines_and_stops_at_256_kib() {
    let rig = Rig::new();
    rig.write("a", &format!("{}\n", "x".repeat(2_500)).repeat(300)).await;
    let text = rig.text(Grep, r#"{"pattern":"x","path":"a","max_results":1000}"#).await;
    assert!(text.len() < 256 * 1024 + 200, "{}", text.len());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("a:1:{}…", "x".repeat(2_000)));
    let shown = lines.len() - 1;
    let last = format!("[the first {shown} matches, cut at 256 KiB; there are more: narrow pattern, path or glob]");
    assert_eq!(lines.last(), Some(&last.as_str()));
    assert!(shown > 120, "{shown}");
}

#[tokio::test]
async fn glob_matches_names_or_paths() {
    let rig = Rig::new();
    for path in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/deep/c.txt", ".git/config.rs", "sub/.git/x.rs", ".env"] {
        rig.write(path, "").await;
    }
    let cases = [
        (r#"{"pattern":"*.rs"}"#, "a.rs src/b.rs src/deep/c.rs"),
        (r#"{"pattern":"src/*.rs"}"#, "src/b.rs"),
        (r#"{"pattern":"./*.rs"}"#, "a.rs"),
        (r#"{"pattern":"src/**/*.rs"}"#, "src/b.rs src/deep/c.rs"),
        (r#"{"pattern":"**/c.*"}"#, "src/deep/c.rs src/deep/c.txt"),
        (r#"{"pattern":"*.rs","path":"src"}"#, "src/b.rs src/deep/c.rs"),
        (r#"{"pattern":"deep/*.{rs,txt}","path":"/workspace/src"}"#, "src/deep/c.rs src/deep/c.txt"),
        (r#"{"pattern":"/workspace/*.rs"}"#, "a.rs"),
        (r#"{"pattern":"/workspace/src/**"}"#, "src/b.rs src/deep/c.rs src/deep/c.txt"),
        (r#"{"pattern":"[ab].rs"}"#, "a.rs src/b.rs"),
        (r#"{"pattern":".e?v"}"#, ".env"),
    ];
    for (input, expected) in cases {
        let expected: Vec<_> = expected.split(' ').map(|path| format!("/workspace/{path}")).collect();
        assert_eq!(rig.text(Glob, input).await, expected.join("\n"), "{input}");
    }
    assert_eq!(rig.text(Glob, r#"{"pattern":"*.md"}"#).await, "[no files match]");
    assert_eq!(
        rig.text(Glob, r#"{"pattern":"*","path":"none"}"#).await,
        "[no files: /workspace/none is not a directory]"
    );
    assert_eq!(rig.failure(Glob, r#"{"pattern":"[a"}"#).await.0, "tool.invalid-arguments");
}

#[tokio::test]
async fn glob_stops_after_501_and_looks_at_20000() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let many = rig.files().join("many");
    std::fs::create_dir(&many).unwrap();
    for n in 0..501 {
        std::fs::write(many.join(format!("f{n:04}.x")), "").unwrap();
    }
    let text = rig.text(Glob, r#"{"pattern":"*.x"}"#).await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 501);
    assert_eq!(lines[499], "/workspace/many/f0499.x");
    assert_eq!(lines[500], "[the first 500 files; there are more: narrow pattern or path]");
    for n in 0..20_000 {
        std::fs::write(many.join(format!("g{n:05}")), "").unwrap();
    }
    let text = rig.text(Glob, r#"{"pattern":"seed"}"#).await;
    assert_eq!(text, "[no files match]\n[only the first 20000 files were looked at; name a path]");
}

#[tokio::test]
async fn lone_surrogates_and_nul_in_content() {
    let rig = Rig::new();
    let output = rig.output(Write, r#"{"path":"a","content":"x\ud800y\u0000z"}"#).await;
    assert_eq!(output, json(r#"{"path":"/workspace/a","bytes":7}"#));
    assert_eq!(std::fs::read(rig.files().join("a")).unwrap(), "x\u{fffd}y\0z".as_bytes());
    assert_eq!(rig.bash("echo hi").await.1, "hi\n");
    let output = rig.output(Bash, r#"{"command":"printf %s '\ud800'"}"#).await;
    assert_eq!(output.get("stdout").and_then(Value::as_str), Some("\u{fffd}"));
}
