//! Cursors into a session's record and into lists (api 1.10, 1.12, 2.3): opaque to clients.
//!
//! An event's cursor is base64url of `<sessionId>:<seq>`, split at its last colon. A history page's cursor begins with
//! `h1.` and carries, before the same text, a digest of what the page was bound to: tenant, session and agent filter.
//! A list's cursor is base64url of JSON: `{version: 1, binding, key: [place, id]}`, the place being the time of
//! creation or what else the list is ordered by.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::json::{Value, parse};

/// Longest cursor that is looked at, in bytes.
pub const MAX_CURSOR_LEN: usize = 4096;

const HISTORY_PREFIX: &str = "h1.";
const BINDING_LEN: usize = 16;
const LIST_VERSION: i64 = 1;

/// Why a cursor is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorError {
    /// It cannot be read.
    Malformed,
    /// It belongs to another session, tenant or filter.
    Mismatch,
}

/// What a history page is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The session.
    pub session: &'a SessionId,
    /// The agent filter.
    pub agent: Option<&'a str>,
}

impl Binding<'_> {
    fn digest(&self) -> String {
        let agent = self.agent.map_or(Value::Null, Value::from);
        let parts = vec![Value::from(self.tenant.as_str()), Value::from(self.session.as_str()), agent];
        let mut digest = sha256_hex(Value::Array(parts).canonical().as_bytes());
        digest.truncate(BINDING_LEN);
        digest
    }
}

/// What a list's page is bound to.
#[derive(Clone, Copy, Debug)]
pub struct ListBinding<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The route's path.
    pub route: &'a str,
    /// The filters that were given, in any order.
    pub filters: &'a [(&'static str, &'a str)],
}

impl ListBinding<'_> {
    fn digest(&self) -> String {
        let mut filters = self.filters.to_vec();
        filters.sort_unstable();
        let filters = filters.into_iter().map(|(name, value)| Value::from(vec![Value::from(name), Value::from(value)]));
        let parts = vec![Value::from(self.tenant.as_str()), Value::from(self.route), Value::Array(filters.collect())];
        sha256_hex(Value::Array(parts).canonical().as_bytes())
    }
}

/// Where a list goes on: after the element of this place and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// What the list is ordered by, such as the time of creation in milliseconds.
    pub place: i64,
    /// Its id.
    pub id: String,
}

/// The cursor of one event.
pub fn event(session: &SessionId, seq: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{session}:{seq}"))
}

/// The cursor of a limited history page that ended at `seq`.
pub fn history(binding: &Binding<'_>, seq: i64) -> String {
    let text = format!("{}{}:{seq}", binding.digest(), binding.session);
    format!("{HISTORY_PREFIX}{}", URL_SAFE_NO_PAD.encode(text))
}

/// Where a cursor of either kind stands in this session: the sequence number of the last event that its holder saw.
pub fn read(cursor: &str, session: &SessionId) -> Result<i64, CursorError> {
    match cursor.strip_prefix(HISTORY_PREFIX) {
        Some(rest) => {
            let (_, place) = split_binding(&decode(rest)?)?;
            place_in(&place, session)
        }
        None => place_in(&decode(cursor)?, session),
    }
}

/// Where a limited page's cursor stands. It must be one of [`history`] with the same binding.
pub fn read_history(cursor: &str, binding: &Binding<'_>) -> Result<i64, CursorError> {
    let rest = cursor.strip_prefix(HISTORY_PREFIX).ok_or(CursorError::Malformed)?;
    let (digest, place) = split_binding(&decode(rest)?)?;
    if digest == binding.digest() { place_in(&place, binding.session) } else { Err(CursorError::Mismatch) }
}

/// The cursor of a list's page that ended at `key`.
pub fn list(binding: &ListBinding<'_>, key: &ListKey) -> String {
    let cursor = Value::object([
        ("version", Value::from(LIST_VERSION)),
        ("binding", Value::from(binding.digest())),
        ("key", Value::from(vec![Value::from(key.place), Value::from(key.id.as_str())])),
    ]);
    URL_SAFE_NO_PAD.encode(cursor.to_json().as_str())
}

/// Where a list's cursor stands. It must be one of [`list`] with the same binding.
pub fn read_list(cursor: &str, binding: &ListBinding<'_>) -> Result<ListKey, CursorError> {
    let cursor = parse(&decode(cursor)?).map_err(|_| CursorError::Malformed)?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned).ok_or(CursorError::Malformed);
    if cursor.get("version").and_then(Value::as_i64) != Some(LIST_VERSION) {
        return Err(CursorError::Malformed);
    }
    let bound_to = text(cursor.get("binding"))?;
    let Some([place, id]) = cursor.get("key").and_then(Value::as_array) else {
        return Err(CursorError::Malformed);
    };
    let place = place.as_i64().ok_or(CursorError::Malformed)?;
    let id = text(Some(id))?;
    if bound_to == binding.digest() { Ok(ListKey { place, id }) } else { Err(CursorError::Mismatch) }
}

fn decode(base64: &str) -> Result<String, CursorError> {
    if base64.len() > MAX_CURSOR_LEN {
        return Err(CursorError::Malformed);
    }
    let bytes = URL_SAFE_NO_PAD.decode(base64).map_err(|_| CursorError::Malformed)?;
    String::from_utf8(bytes).map_err(|_| CursorError::Malformed)
}

fn split_binding(text: &str) -> Result<(String, String), CursorError> {
    let (digest, place) = text.split_at_checked(BINDING_LEN).ok_or(CursorError::Malformed)?;
    Ok((digest.to_owned(), place.to_owned()))
}

fn place_in(text: &str, session: &SessionId) -> Result<i64, CursorError> {
    let (id, seq) = text.rsplit_once(':').ok_or(CursorError::Malformed)?;
    // One form only: no sign, no zero before other digits.
    let is_plain = seq.bytes().all(|byte| byte.is_ascii_digit()) && (seq == "0" || !seq.starts_with('0'));
    let seq = seq.parse().ok().filter(|_| is_plain).ok_or(CursorError::Malformed)?;
    if id == session.as_str() { Ok(seq) } else { Err(CursorError::Mismatch) }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use nylorun_domain::id::{SessionId, TenantId};

    use super::{
        Binding, CursorError, ListBinding, ListKey, URL_SAFE_NO_PAD, event, history, list, read, read_history,
        read_list,
    };

    #[test]
    fn event_cursors_are_base64url_of_session_and_seq() {
        let session = SessionId::from_trusted("a:b");
        assert_eq!(event(&session, 7), "YTpiOjc");
        assert_eq!(read("YTpiOjc", &session), Ok(7));
        assert_eq!(read("YTpiOjc", &SessionId::from_trusted("a")), Err(CursorError::Mismatch));
    }

    #[test]
    fn history_cursors_are_bound() {
        let (tenant, session) = (TenantId::from_trusted("tn_1"), SessionId::from_trusted("s"));
        let binding = Binding { tenant: &tenant, session: &session, agent: None };
        let cursor = history(&binding, 41);
        assert!(cursor.starts_with("h1."));
        assert_eq!(read_history(&cursor, &binding), Ok(41));
        assert_eq!(read(&cursor, &session), Ok(41));
        let filtered = Binding { agent: Some("a"), ..binding };
        assert_eq!(read_history(&cursor, &filtered), Err(CursorError::Mismatch));
        assert_eq!(read_history(&event(&session, 41), &binding), Err(CursorError::Malformed));
    }

    #[test]
    fn list_cursors_are_bound_to_tenant_route_and_filters() {
        let (tenant, other) = (TenantId::from_trusted("tn_1"), TenantId::from_trusted("tn_2"));
        let binding =
            ListBinding { tenant: &tenant, route: "/v1/sessions", filters: &[("status", "idle"), ("agentId", "a")] };
        for id in ["s", "\"\\", "a/b \u{e9}\u{1f600}"] {
            let key = ListKey { place: 1_750_000_000_000, id: id.to_owned() };
            let cursor = list(&binding, &key);
            assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')), "{cursor}");
            let turned = ListBinding { filters: &[("agentId", "a"), ("status", "idle")], ..binding };
            assert_eq!(read_list(&cursor, &turned), Ok(key));
            for mismatch in [
                ListBinding { tenant: &other, ..binding },
                ListBinding { route: "/v1/artifacts", ..binding },
                ListBinding { filters: &[("status", "idle")], ..binding },
                ListBinding { filters: &[("status", "idle"), ("agentId", "b")], ..binding },
            ] {
                assert_eq!(read_list(&cursor, &mismatch), Err(CursorError::Mismatch));
            }
        }
    }

    #[test]
    fn refuses_what_is_no_list_cursor() {
        let tenant = TenantId::from_trusted("tn_1");
        let binding = ListBinding { tenant: &tenant, route: "/v1/sessions", filters: &[] };
        for wrong in [
            "",
            "{}",
            "[]",
            "1",
            r#"{"version":2,"binding":"b","key":[1,"a"]}"#,
            r#"{"version":1,"key":[1,"a"]}"#,
            r#"{"version":1,"binding":"b","key":[1]}"#,
            r#"{"version":1,"binding":"b","key":["1","a"]}"#,
            r#"{"version":1,"binding":"b","key":[1.5,"a"]}"#,
            r#"{"version":1,"binding":"b","key":[1,"a","b"]}"#,
        ] {
            assert_eq!(read_list(&URL_SAFE_NO_PAD.encode(wrong), &binding), Err(CursorError::Malformed), "{wrong}");
        }
        assert_eq!(read_list("e30=", &binding), Err(CursorError::Malformed));
        assert_eq!(read_list(&"A".repeat(4_100), &binding), Err(CursorError::Malformed));
    }

    #[test]
    fn refuses_what_is_no_cursor() {
        let session = SessionId::from_trusted("s");
        // In order: empty, no base64, padding, no colon, no number, a sign, a zero before, too large.
        let wrong =
            ["", "%", "czox==", "cw", "czo", "czotMQ", "czowMQ", "czo5OTk5OTk5OTk5OTk5OTk5OTk5OQ", "h1.", "h1.cw"];
        for wrong in wrong {
            assert_eq!(read(wrong, &session), Err(CursorError::Malformed), "{wrong}");
        }
    }

    /// Seeded noise: no input may panic, and what is read back must be what was printed.
    #[test]
    fn noise_never_panics_and_every_printed_cursor_reads_back() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let alphabet: Vec<char> = "aZ09-_.:h1=/é\u{1f600}".chars().collect();
        for _ in 0..2_000 {
            let length = next() % 40 + 1;
            let text: String = (0..length).map(|_| alphabet[(next() % alphabet.len() as u64) as usize]).collect();
            let session = SessionId::from_trusted(text.as_str());
            let seq = (next() >> 1) as i64;
            assert_eq!(read(&event(&session, seq), &session), Ok(seq));
            let _ = read(&text, &session);
        }
    }
}
