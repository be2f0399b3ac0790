//! Grammars of the wire: names, ids, labels, durations, sizes, host patterns (api 1.12, sandbox-and-definitions a1).
//!
//! `is_…` says whether a text follows a grammar; use it with [`TextRule::matching`](crate::check::TextRule::matching).
//! `parse_…` gives the value or says what is wrong; use it with [`Place::parsed`](crate::check::Place::parsed).

use crate::json::utf16_len;

/// Most labels of a workspace or an artifact.
pub const MAX_LABELS: usize = 32;
/// Least memory of a workspace, in MiB; smaller sizes are raised to it.
pub const MIN_MEMORY_MIB: u32 = 128;

/// Largest whole number that every JSON reader holds exactly.
const MAX_SAFE: u64 = 9_007_199_254_740_991;
const MIB: u64 = 1 << 20;

/// Names of tools, MCP servers and delegates: 1 to 64 of letters, digits, `_`, `-`.
pub fn is_tool_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A subject in a header: 1 to 200 printable ASCII characters that neither begin nor end with a space; `host` and
/// `installation` are reserved.
pub fn is_subject(text: &str) -> bool {
    let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let outer_space = text.starts_with(' ') || text.ends_with(' ');
    (1..=200).contains(&text.len()) && printable && !outer_space && !matches!(text, "host" | "installation")
}

/// The id of an application or management key: a lower-case letter, then up to 31 lower-case letters, digits or `-`.
pub fn is_key_id(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A key id that a caller may put: `studio` is reserved and `bootstrap` is made by the server alone.
pub fn is_puttable_key_id(text: &str) -> bool {
    is_key_id(text) && !matches!(text, "studio" | "bootstrap")
}

/// The keys of a home directory's own command line, which each start registers again from its file.
pub fn is_own_key_id(text: &str) -> bool {
    matches!(text, "local" | "local-management")
}

/// The id of a workspace resource: up to 200 characters, segments divided by `/`, each beginning with a letter or digit
/// and going on with those or `.`, `_`, `-`.
pub fn is_sandbox_id(text: &str) -> bool {
    text.len() <= 200 && text.split('/').all(is_id_segment)
}

/// One segment of a workspace resource's id; also the value of a claim in a grant template (api 1.6).
pub fn is_id_segment(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// A grant over workspace resources: an id, or an id and `/*`.
pub fn is_sandbox_grant(text: &str) -> bool {
    is_sandbox_id(text.strip_suffix("/*").unwrap_or(text))
}

/// Whether a grant covers this id: the id itself, or every id strictly below the prefix of a `/*` grant.
pub fn grant_covers(grant: &str, id: &str) -> bool {
    match grant.strip_suffix("/*") {
        Some(prefix) => id.strip_prefix(prefix).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')),
        None => grant == id,
    }
}

/// A label's key: 1 to 63 characters, alphanumeric at both ends, with `.`, `_`, `/`, `-` between.
pub fn is_label_key(text: &str) -> bool {
    let ends_alphanumeric =
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    (1..=63).contains(&text.len()) && ends_alphanumeric && text.bytes().all(allowed)
}

/// A label's value: up to 256 printable ASCII characters.
pub fn is_label_value(text: &str) -> bool {
    text.len() <= 256 && text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
}

/// The name of a definition file: `sha256:` and 64 lower-case hexadecimal digits.
pub fn is_file_hash(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// The path of a file below a folder: 1 to 512 UTF-16 units, `/` between segments, none of them empty, `.` or `..`, no
/// backslash and no control character.
pub fn is_relative_path(text: &str) -> bool {
    utf16_len(text) <= 512
        && !text.chars().any(|c| c == '\\' || c.is_control())
        && text.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

/// The name of an environment variable that a caller may set: not one that the runtime sets itself.
pub fn is_environment_name(text: &str) -> bool {
    const RESERVED: [&str; 16] = [
        "PATH",
        "HOME",
        "PWD",
        "SHELL",
        "USER",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "AWS_CA_BUNDLE",
    ];
    let upper = text.to_ascii_uppercase();
    (1..=128).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !upper.starts_with("NYLORUN_")
        && !RESERVED.contains(&upper.as_str())
}

/// A duration in milliseconds: a whole number and, without a space, `ms`, `s`, `m`, `h` or `d`. White space around it
/// is ignored; zero is refused.
pub fn parse_duration_ms(text: &str) -> Result<i64, &'static str> {
    const WRONG: &str = "Invalid duration: expected a positive whole number followed by ms, s, m, h or d, such as 15m";
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    quantity(text, &units).and_then(|ms| i64::try_from(ms).ok()).ok_or(WRONG)
}

/// Prints a duration with the largest unit that divides it: `15m`, `90s`.
pub fn print_duration(ms: i64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.into_iter().find(|(length, _)| ms != 0 && ms % length == 0) {
        Some((length, unit)) => format!("{}{unit}", ms / length),
        None => format!("{ms}ms"),
    }
}

/// A size in bytes: a whole number and, without a space, `B`, `KiB`, `MiB`, `GiB` or `TiB`. White space around it is
/// ignored; zero is refused.
pub fn parse_size(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str =
        "Invalid size: expected a positive whole number followed by B, KiB, MiB, GiB or TiB, such as 512MiB";
    quantity(text, &[("B", 1), ("KiB", 1 << 10), ("MiB", MIB), ("GiB", 1 << 30), ("TiB", 1 << 40)]).ok_or(WRONG)
}

/// A size of memory in MiB, rounded up to a whole one and to [`MIN_MEMORY_MIB`].
pub fn parse_memory_mib(text: &str) -> Result<u32, &'static str> {
    let mib = u32::try_from(parse_size(text)?.div_ceil(MIB)).map_err(|_| "Invalid size: too large for memory")?;
    Ok(mib.max(MIN_MEMORY_MIB))
}

/// A host pattern, lower-cased: a DNS name of at least two labels, with `*.` before it for every name below it. No
/// scheme, port, path or IPv4 address.
pub fn parse_host_pattern(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "Invalid host pattern: expected a host name such as api.example.com or *.example.com";
    let lower = text.to_ascii_lowercase();
    let name = lower.strip_prefix("*.").unwrap_or(&lower);
    let labels: Vec<_> = name.split('.').collect();
    let all_numeric = labels.iter().all(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    let follows =
        (1..=253).contains(&name.len()) && labels.len() >= 2 && labels.iter().all(|label| is_dns_label(label));
    if follows && !all_numeric { Ok(lower) } else { Err(WRONG) }
}

fn is_dns_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A positive whole number times one of `units`.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = number.parse::<u64>().ok()?.checked_mul(*factor)?;
    (1..=MAX_SAFE).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_grammar(follows: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        let wrong = good.iter().filter(|text| !follows(text)).chain(bad.iter().filter(|text| follows(text)));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn names_and_ids() {
        let (x32, x33, x64, x65) = ("x".repeat(32), "x".repeat(33), "x".repeat(64), "x".repeat(65));
        let (x200, x201) = ("x".repeat(200), "x".repeat(201));
        assert_grammar(is_tool_name, &["a", "A_b-9", "-", &x64], &["", "a b", "a.b", "é", "a/b", &x65]);
        assert_grammar(
            is_subject,
            &["a", "user 1", "~!", "Host", "a@b.c", &x200],
            &["", " a", "a ", " ", "é", "a\tb", "host", "installation", &x201],
        );
        assert_grammar(
            is_key_id,
            &["a", "local-management", "studio", "a-", &x32],
            &["", "A", "1a", "-a", "a_b", &x33],
        );
        assert_grammar(is_puttable_key_id, &["local", "studio2"], &["studio", "bootstrap", "1a"]);
        assert_grammar(
            is_sandbox_id,
            &["a", "9", "team/app.1/x_y-z", &x200],
            &["", "/", "a/", "/a", "a//b", ".a", "a/.b", "a/..", "a b", "é", &x201],
        );
        assert_grammar(is_sandbox_grant, &["a", "a/b", "a/*", "a/b/*"], &["*", "/*", "a*", "a/*/b", "a/**"]);
        let hash = format!("sha256:{}", "0a".repeat(32));
        assert_grammar(
            is_file_hash,
            &[&hash],
            &["", &hash[..70], &hash[7..], &hash.to_uppercase(), &format!("{hash}0")],
        );
        let x512 = "x".repeat(512);
        assert_grammar(
            is_relative_path,
            &["a", "a/b.txt", "...", "a b/é", &x512],
            &["", "/a", "a/", "a//b", ".", "..", "a/../b", "a\\b", "a\0", "a\n", &format!("{x512}x")],
        );
        assert_grammar(
            is_environment_name,
            &["A", "_a9", "PATHS", &"A".repeat(128)],
            &["", "9A", "A-B", "path", "Home", "https_proxy", "NYLORUN_X", "nylorun_x", "é", &"A".repeat(129)],
        );
    }

    #[test]
    fn labels() {
        let (x63, x64) = ("x".repeat(63), "x".repeat(64));
        assert_grammar(is_label_key, &["a", "a.b_c/d-e", "9", &x63], &["", "-a", "a-", "a b", ".a", "é", &x64]);
        assert_grammar(is_label_value, &["", " ", "~", &"x".repeat(256)], &["\n", "é", "\u{7f}", &"x".repeat(257)]);
    }

    #[test]
    fn a_grant_covers_itself_or_what_is_below_it() {
        for (grant, id, covers) in [
            ("a", "a", true),
            ("a", "a/b", false),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", true),
            ("a/*", "a", false),
            ("a/*", "a/", false),
            ("a/*", "ab/c", false),
            ("a/b/*", "a/bc", false),
        ] {
            assert_eq!(grant_covers(grant, id), covers, "{grant} {id}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("1ms", Some(1)),
            (" 15m\n", Some(900_000)),
            ("30s", Some(30_000)),
            ("2h", Some(7_200_000)),
            ("007d", Some(604_800_000)),
            ("104249991d", Some(9_007_199_222_400_000)),
            ("104249992d", None),
            ("99999999999999999999s", None),
            ("0s", None),
            ("", None),
            ("5", None),
            ("m", None),
            ("5 m", None),
            ("-5m", None),
            ("1.5h", None),
            ("5M", None),
            ("5m5s", None),
        ] {
            assert_eq!(parse_duration_ms(text).ok(), ms, "{text}");
        }
        for (ms, text) in [(900_000, "15m"), (90_000, "90s"), (1_500, "1500ms"), (86_400_000, "1d"), (0, "0ms")] {
            assert_eq!(print_duration(ms), text);
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1B", Some(1)),
            (" 2KiB ", Some(2_048)),
            ("512MiB", Some(512 << 20)),
            ("3GiB", Some(3 << 30)),
            ("1TiB", Some(1 << 40)),
            ("0MiB", None),
            ("1MB", None),
            ("1mib", None),
            ("1", None),
            ("8192TiB", None),
            ("1 GiB", None),
        ] {
            assert_eq!(parse_size(text).ok(), bytes, "{text}");
        }
        for (text, mib) in [
            ("1B", Some(128)),
            ("128MiB", Some(128)),
            ("134217729B", Some(129)),
            ("1GiB", Some(1_024)),
            ("4096TiB", None),
            ("x", None),
        ] {
            assert_eq!(parse_memory_mib(text).ok(), mib, "{text}");
        }
    }

    #[test]
    fn host_patterns() {
        let label = "x".repeat(63);
        let long = [label.as_str(); 4].join(".");
        for (text, pattern) in [
            ("api.example.com", Some("api.example.com")),
            ("*.Example.COM", Some("*.example.com")),
            ("1.2.3.4x", Some("1.2.3.4x")),
            (&format!("{label}.a"), Some(format!("{label}.a").as_str())),
            (&long[2..], Some(&long[2..])),
            (&long, None),
            (&format!("{label}x.a"), None),
            ("localhost", None),
            ("*.com", None),
            ("*", None),
            ("*.*.example.com", None),
            ("a.*.com", None),
            ("1.2.3.4", None),
            ("-a.com", None),
            ("a-.com", None),
            ("a..com", None),
            ("a.com.", None),
            (".a.com", None),
            ("a_b.com", None),
            ("https://a.com", None),
            ("a.com:443", None),
            ("a.com/x", None),
            ("é.com", None),
            ("", None),
        ] {
            assert_eq!(parse_host_pattern(text).ok().as_deref(), pattern, "{text}");
        }
    }
}
