//! What the server's variables may hold. Each refusal names variable, value and what is allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;

use nylorun_domain::segment::YieldAfter;
use nylorun_store::db::DatabaseUrl;
use nylorun_workspace::{ManagerConfig, Preference, Quota};

use super::HarnessReached;
use super::variables::unusable;
use crate::cli::Failure;

const DEFAULT_PORT: u16 = 4000;
/// Most model calls of a turn.
const MAX_STEPS: u32 = 500;
/// As the protocol counts them, for a name that people read.
const MAX_NAME: usize = 200;

pub(super) fn listen_host(text: Option<String>) -> Result<IpAddr, Failure> {
    let Some(text) = text else { return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
    let host: Result<IpAddr, _> = text.parse();
    host.map_err(|_| unusable("NYLORUN_LISTEN_HOST", &text, "an IP address such as 127.0.0.1, 0.0.0.0 or ::"))
}

pub(super) fn listen_port(text: Option<String>) -> Result<u16, Failure> {
    let Some(text) = text else { return Ok(DEFAULT_PORT) };
    let port: Result<u16, _> = text.parse();
    port.map_err(|_| unusable("NYLORUN_LISTEN_PORT", &text, "a port from 1 to 65535, or 0 for a free one"))
}

/// Values of the `Host` header, by commas, in lower case.
pub(super) fn allowed_hosts(text: &str) -> Result<Vec<String>, Failure> {
    const ALLOWED: &str = "the host:port names that clients use, by commas, such as agents.example.com:8443; \
         without the port where clients use 80 or 443";
    let hosts = text.split(',').map(|host| host.trim().to_lowercase());
    hosts
        .map(|host| if is_host(&host) { Ok(host) } else { Err(unusable("NYLORUN_ALLOWED_HOSTS", &host, ALLOWED)) })
        .collect()
}

/// A name or address as it may stand in a `Host` header, with or without a port.
fn is_host(text: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_rest = |rest: &str| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok() && is_rest(rest);
    }
    let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
    is_name(name) && is_rest(rest)
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(inside)
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// The URL by which clients reach the server, without slashes at its end (engine f.2).
pub(super) fn public_url(text: &str) -> Result<String, Failure> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split('/').next().unwrap_or_default().to_ascii_lowercase());
    let is_in_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%[]".contains(&byte);
    if authority.is_some_and(|authority| is_host(&authority)) && text.bytes().all(is_in_path) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    let allowed = "http:// or https://, the host and perhaps a path, such as https://agents.example.com";
    Err(unusable("NYLORUN_PUBLIC_URL", text, allowed))
}

/// The URL may hold a password, so its value is not repeated.
pub(super) fn database_url(url: &str) -> Result<DatabaseUrl, Failure> {
    url.parse().map_err(|error| {
        Failure::usage(format!("NYLORUN_DATABASE_URL cannot be used: {error}"))
            .remedy("set it to sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE, or leave it out")
    })
}

/// A backend that some build has; whether this one has it, the workspaces know.
pub(super) fn sandbox(text: Option<String>) -> Result<Preference, Failure> {
    let text = text.unwrap_or_default();
    match Preference::parse(&text) {
        Preference::Unknown(_) => {
            Err(unusable("NYLORUN_SANDBOX", &text, "auto or the name of a backend, such as virtual"))
        }
        known @ (Preference::Auto | Preference::Named(_)) => Ok(known),
    }
}

pub(super) fn harness(text: Option<String>) -> Result<HarnessReached, Failure> {
    match text.as_deref() {
        None | Some("in-process") => Ok(HarnessReached::ByReference),
        Some("json") => Ok(HarnessReached::ThroughJson),
        Some(other) => {
            Err(unusable("NYLORUN_HARNESS", other, "in-process, or json for tests; remote is not available yet"))
        }
    }
}

pub(super) fn workspace_quota(bytes: Option<String>, files: Option<String>) -> Result<Quota, Failure> {
    let bytes = match bytes {
        None => Quota::DEFAULT.bytes,
        Some(text) => nylorun_domain::grammar::parse_size(&text).map_err(|_| {
            unusable("NYLORUN_WORKSPACE_QUOTA", &text, "a number followed by B, KiB, MiB, GiB or TiB, such as 1GiB")
        })?,
    };
    let files: Option<NonZeroU64> = count("NYLORUN_WORKSPACE_FILES", files)?;
    Ok(Quota { bytes, files: files.map_or(Quota::DEFAULT.files, NonZeroU64::get) })
}

pub(super) fn workspaces_live(text: Option<String>) -> Result<NonZeroU32, Failure> {
    Ok(count("NYLORUN_WORKSPACES_LIVE", text)?.unwrap_or(ManagerConfig::DEFAULT_MAX_LIVE))
}

/// A number that is not zero.
fn count<N: FromStr>(name: &str, text: Option<String>) -> Result<Option<N>, Failure> {
    let read = |text: String| text.parse().map_err(|_| unusable(name, &text, "a whole number from 1, such as 64"));
    text.map(read).transpose()
}

/// Plain http towards endpoints cannot be refused yet: a wish for it must not be passed over in silence.
pub(super) fn endpoint_http(text: Option<String>) -> Result<(), Failure> {
    match text.as_deref() {
        None | Some("allow") => Ok(()),
        Some(other) => Err(unusable("NYLORUN_ENDPOINT_HTTP", other, "allow (this version cannot refuse plain http)")),
    }
}

pub(super) fn tenant_id(id: String) -> Result<String, Failure> {
    let is_crockford = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase() && !"ilou".contains(c);
    let is_valid = id.strip_prefix("tn_").is_some_and(|rest| rest.len() == 26 && rest.chars().all(is_crockford));
    if is_valid {
        return Ok(id);
    }
    Err(unusable("NYLORUN_TENANT_ID", &id, "tn_ and 26 of 0-9 and a-z without i, l, o and u"))
}

pub(super) fn tenant_name(name: String) -> Result<String, Failure> {
    if name.encode_utf16().count() <= MAX_NAME && !name.chars().any(char::is_control) {
        return Ok(name);
    }
    Err(unusable("NYLORUN_TENANT_NAME", &name, "at most 200 characters, none of them a control character"))
}

pub(super) fn stop_grace(text: Option<String>) -> Result<Duration, Failure> {
    Ok(duration("NYLORUN_STOP_GRACE", text)?.unwrap_or(Duration::from_secs(30)))
}

pub(super) fn yield_after(steps: Option<String>, time: Option<String>) -> Result<YieldAfter, Failure> {
    let mut yield_after = YieldAfter::default();
    if let Some(text) = steps {
        // A turn that has as many steps as it may has ended.
        let steps = text.parse().ok().filter(|steps| (1..=MAX_STEPS).contains(steps));
        yield_after.steps =
            steps.ok_or_else(|| unusable("NYLORUN_YIELD_STEPS", &text, "a whole number from 1 to 500, such as 50"))?;
    }
    if let Some(time) = duration("NYLORUN_YIELD_AFTER", time)? {
        yield_after.ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    }
    Ok(yield_after)
}

pub(super) fn stall_limit(text: Option<String>) -> Result<Duration, Failure> {
    Ok(duration("NYLORUN_STALL_LIMIT", text)?.unwrap_or(nylorun_server::Limits::default().write))
}

fn duration(name: &str, text: Option<String>) -> Result<Option<Duration>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let ms = nylorun_domain::grammar::parse_duration_ms(&text);
    let ms =
        ms.map_err(|_| unusable(name, &text, "a positive whole number followed by ms, s, m, h or d, such as 30s"))?;
    Ok(Some(Duration::from_millis(ms.unsigned_abs())))
}

/// A filter of log lines: `LEVEL`, or `TARGET=LEVEL` for one part of the server, by commas.
pub(super) fn log_filter(text: Option<String>) -> Result<String, Failure> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let Some(text) = text else { return Ok("info".to_owned()) };
    let is_level = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
    let is_target = |target: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
        target.starts_with("nylorun") && target.bytes().all(inside)
    };
    let is_directive = |directive: &str| match directive.split_once('=') {
        Some((target, level)) => is_target(target) && is_level(level),
        None => is_level(directive),
    };
    let directives: Vec<&str> = text.split(',').map(str::trim).collect();
    if directives.iter().all(|directive| is_directive(directive)) {
        return Ok(directives.join(","));
    }
    let allowed = "error, warn, info, debug, trace or off, or a list such as info,nylorun_turns=debug";
    Err(unusable("NYLORUN_LOG", &text, allowed))
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people: time, level, text, `name=value`.
    Text,
    /// For programs: a JSON object a line.
    Json,
}

pub(super) fn log_format(text: Option<String>) -> Result<LogFormat, Failure> {
    match text.as_deref() {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => Err(unusable("NYLORUN_LOG_FORMAT", other, "text or json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_as_a_header_names_them() {
        let hosts = allowed_hosts("A.example:80, b:81,[::1]:4000,[::1], agents.example.com,10.0.0.1:4000").unwrap();
        let expected = ["a.example:80", "b:81", "[::1]:4000", "[::1]", "agents.example.com", "10.0.0.1:4000"];
        assert_eq!(hosts, expected);
        for wrong in [
            "",
            "a,,b",
            "http://a:80",
            "a:80/x",
            "a:0",
            "a:70000",
            "a:",
            "*",
            "*.a.example",
            "a b",
            "[::1]80",
            "[x]:1",
            "a..b",
        ] {
            let refused = allowed_hosts(wrong).unwrap_err();
            assert!(refused.to_string().starts_with("NYLORUN_ALLOWED_HOSTS="), "{wrong}: {refused}");
        }
    }

    #[test]
    fn a_filter_has_levels_and_parts_of_the_server() {
        assert_eq!(log_filter(None).unwrap(), "info");
        for right in ["debug", "INFO", "info, nylorun_turns=debug", "off", "warn,nylorun::serve=trace"] {
            let filter = log_filter(Some(right.to_owned())).unwrap();
            assert!(tracing_subscriber::EnvFilter::try_new(&filter).is_ok(), "{right}");
        }
        for wrong in
            ["nonsense", "infos", "info,", "turns=debug", "nylorun_turns=loud", "nylorun_turns", "5", "[x]=info"]
        {
            assert!(log_filter(Some(wrong.to_owned())).is_err(), "{wrong}");
        }
    }
}
