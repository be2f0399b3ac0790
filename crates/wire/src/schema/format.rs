//! Grammars of text members, each with what an OpenAPI document says of it.

use nylorun_domain::{grammar, sandbox};

/// A grammar.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Whether a text follows it.
    pub follows: fn(&str) -> bool,
    /// What would be right, for a message: "expected …".
    pub expected: &'static str,
    /// The same as a regular expression, where one says it.
    pub pattern: Option<&'static str>,
    /// A text that follows it.
    pub sample: &'static str,
    /// A text of allowed length that does not.
    pub wrong: &'static str,
}

pub(super) const ID: Format = Format {
    follows: |text| !text.chars().any(char::is_control),
    expected: "a string without control characters",
    pattern: Some(r"^[^\u0000-\u001f\u007f-\u009f]+$"),
    sample: "sample-1",
    wrong: "a\u{0}b",
};

pub(super) const PLAIN: Format = Format {
    follows: |text| !text.contains('\0'),
    expected: "a string without NUL",
    pattern: Some(r"^[^\u0000]*$"),
    sample: "a text",
    wrong: "a\u{0}b",
};

pub(super) const SIZE: Format = Format {
    follows: |text| grammar::parse_size(text).is_ok(),
    expected: "a size such as 512MiB",
    pattern: Some(r"^\d+(B|KiB|MiB|GiB|TiB)$"),
    sample: "512MiB",
    wrong: "512MB",
};

pub(super) const DURATION: Format = Format {
    follows: |text| grammar::parse_duration_ms(text).is_ok(),
    expected: "a positive whole number followed by ms, s, m, h or d, such as 15m",
    pattern: Some(r"^\d+(ms|s|m|h|d)$"),
    sample: "15m",
    wrong: "15 minutes",
};

pub(super) const STOP_GRACE: Format = Format {
    follows: |text| sandbox::parse_stop_grace_ms(text).is_ok(),
    expected: "a duration of at most 30s, such as 10s",
    pattern: Some(r"^\d+(ms|s|m|h|d)$"),
    sample: "10s",
    wrong: "31s",
};

pub(super) const HOST_PATTERN: Format = Format {
    follows: |text| grammar::parse_host_pattern(text).is_ok(),
    expected: "a host name such as api.example.com or *.example.com",
    pattern: None,
    sample: "api.example.com",
    wrong: "https://api.example.com",
};

pub(super) const PROVIDER: Format = Format {
    follows: |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')),
    expected: "letters, digits, '.', '_' or '-'",
    pattern: Some(r"^[a-zA-Z0-9._-]+$"),
    sample: "anthropic",
    wrong: "no provider",
};

pub(super) const HTTP_URL: Format = Format {
    follows: is_http_url,
    expected: "an http or https URL",
    pattern: Some(r"^https?://"),
    sample: "http://127.0.0.1:11434/v1",
    wrong: "ftp://example.com",
};

pub(super) const SANDBOX_ID: Format = Format {
    follows: grammar::is_sandbox_id,
    expected: "segments of letters, digits, '.', '_' and '-', divided by '/'",
    pattern: Some(r"^[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*$"),
    sample: "team-a/proj-42",
    wrong: "/team",
};

pub(super) const FILE_HASH: Format = Format {
    follows: grammar::is_file_hash,
    expected: "sha256: and 64 lower-case hexadecimal digits",
    pattern: Some(r"^sha256:[0-9a-f]{64}$"),
    sample: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    wrong: "md5:0",
};

pub(super) const KEY_ID: Format = Format {
    follows: grammar::is_key_id,
    expected: "a lower-case letter, then up to 31 lower-case letters, digits or '-'",
    pattern: Some(r"^[a-z][a-z0-9-]{0,31}$"),
    sample: "ci",
    wrong: "Not A Key",
};

/// A first check: who uses the URL parses it.
fn is_http_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with(['/', ':', '?', '#'])
            && !text.contains(|c: char| c.is_control() || c == ' ')
    })
}

#[cfg(test)]
mod tests {
    use super::{
        DURATION, FILE_HASH, HOST_PATTERN, HTTP_URL, ID, KEY_ID, PLAIN, PROVIDER, SANDBOX_ID, SIZE, STOP_GRACE,
    };

    #[test]
    fn every_format_has_a_right_and_a_wrong_text() {
        for format in
            [ID, PLAIN, SIZE, DURATION, STOP_GRACE, HOST_PATTERN, PROVIDER, HTTP_URL, SANDBOX_ID, KEY_ID, FILE_HASH]
        {
            assert!((format.follows)(format.sample), "{}", format.sample);
            assert!(!(format.follows)(format.wrong), "{}", format.wrong);
        }
    }
}
