//! Agreement with the system's `grep -E`, where there is one.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{Case, compile};

/// Which of the lines grep finds, or that it refuses the expression. `None` without a grep.
fn grep_finds(pattern: &str, lines: &[&str]) -> Option<Result<Vec<bool>, ()>> {
    let mut grep = Command::new("grep")
        .args(["-E", "-n", "-e", pattern])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // It may be gone before it has read: it has refused the expression.
    let _ = grep.stdin.take()?.write_all(format!("{}\n", lines.join("\n")).as_bytes());
    let output = grep.wait_with_output().ok()?;
    if output.status.code()? > 1 {
        return Some(Err(()));
    }
    let mut found = vec![false; lines.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let number: usize = line.split(':').next()?.parse().ok()?;
        found[number - 1] = true;
    }
    Some(Ok(found))
}

fn we_find(pattern: &str, lines: &[&str]) -> Result<Vec<bool>, ()> {
    let regex = compile(pattern, Case::Sensitive).map_err(drop)?;
    Ok(lines.iter().map(|line| regex.is_match(line.as_bytes())).collect())
}

const LINES: &[&str] = &[
    "", "a", "b", "ab", "aab", "aaa", "abc", "A", "é", "É", "1", "٣", "_", "-", "]", "[", "^", "$", ".", "*", "+", "?",
    "{", "}", "{1}", "a{1", "a{x", "a{1,2", "(", ")", "a)", "|", "\\", "a b", " ", "\t", "\u{a0}", "\u{2003}", "€",
    "x^y", "x$y", "a\\b", "foo.bar", "foo-bar", "don't",
];

const PATTERNS: &[&str] = &[
    "a",
    "^a",
    "a$",
    "^$",
    "^a$",
    "a*",
    "a+",
    "a?b",
    "a{2}",
    "a{2,}",
    "a{,2}b",
    "a{,}b",
    "a{0}",
    "a{3,2}",
    "a{x",
    "a{1",
    "a{1,2",
    "{1}",
    "*a",
    "+a",
    "?a",
    "^*",
    "a|b",
    "a|",
    "|a",
    "a||b",
    "(a|b)c",
    "()",
    "(|a)b",
    "(a",
    "a)",
    "(*b)",
    "a|*b",
    "a**",
    "a+*",
    "(a*)+",
    "(a{1}){2}",
    "a{1}{2}",
    "[abc]",
    "[^abc]",
    "[a-c]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    "[a-c-e]",
    "[%--]",
    "[z-a]",
    "[a",
    "[",
    "[]",
    "[^]",
    "[[:alpha:]]",
    "[[:digit:]]",
    "[[:alnum:]_]",
    "[[:upper:]]",
    "[[:lower:]]",
    "[[:space:]]",
    "[[:blank:]]",
    "[[:punct:]]",
    "[[:xdigit:]]",
    "[[:print:]]",
    "[[:graph:]]",
    "[[:cntrl:]]",
    "[[:foo:]]",
    "[:alpha:]",
    "[^[:space:]]",
    "[[.-.]]",
    "[[=a=]]",
    "[[.a.]-c]",
    "[[.space.]]",
    "[a-[:alpha:]]",
    "[\\]",
    "[\\n]",
    "[a\\]b]",
    ".",
    "..",
    "\\.",
    "\\*",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "\\{",
    "\\}",
    "\\|",
    "\\\\",
    "\\^",
    "\\$",
    "\\+",
    "\\?",
    "]",
    "}",
    "a}",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\ba",
    "a\\b",
    "a\\Bb",
    "\\<a",
    "a\\>",
    "\\<b\\>",
    "\\`a",
    "a\\'",
    "x^y",
    "x$y",
    "(^a)",
    "(a$)",
    "a\\",
    "é",
    "[é]",
    "foo.bar",
    "foo\\.bar",
    "-",
    "#",
    "a b",
    "[[:alpha:]]+-[[:alpha:]]+",
    "a{32768}",
    "[a&&b]",
    "[a~~b]",
    "[a--b]",
];

#[test]
fn the_table_agrees() {
    let mut differences = Vec::new();
    for pattern in PATTERNS {
        let Some(expected) = grep_finds(pattern, LINES) else { return };
        match (expected, we_find(pattern, LINES)) {
            (Ok(expected), Ok(given)) => {
                let pairs = LINES.iter().zip(expected.iter().zip(&given));
                differences.extend(pairs.filter(|(_, (expected, given))| expected != given).map(
                    |(line, (expected, given))| format!("{pattern:?} on {line:?}: grep {expected}, ours {given}"),
                ));
            }
            (expected, given) if expected.is_ok() != given.is_ok() => {
                differences.push(format!(
                    "{pattern:?}: refused by grep: {}, by us: {}",
                    expected.is_err(),
                    given.is_err()
                ));
            }
            _ => {}
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_text_ends_in_an_answer(pattern in any::<String>()) {
        let _ = we_find(&pattern, &["some line"]);
    }

    #[test]
    fn any_expression_of_special_characters_ends_in_an_answer(pattern in r"[ab(){}\[\]|*+?^$.\\,:=\-0-9]{0,24}") {
        let _ = we_find(&pattern, &["aab"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    // Repeated anchors and repetitions of nothing are left out: POSIX leaves them undefined, and grep has no one
    // answer.
    #[test]
    fn expressions_agree(
        start in "\\^?",
        body in r"[ab.]([ab.]|[ab.][*+?]|\(b|a\)|[ab]\)[*+?]|[ab]\{1,2\}|\|a|\[ab\]|\[\^a\]){1,8}",
        end in r"\$?",
        lines in prop::collection::vec("[abx]{0,5}", 1..20),
    ) {
        let pattern = format!("{start}{body}{end}");
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        if let Some(expected) = grep_finds(&pattern, &lines) {
            prop_assert_eq!(we_find(&pattern, &lines), expected);
        }
    }
}
