//! Ids, names, quantities and cursors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nylorun_domain::grammar;
use nylorun_domain::id::{MAX_ID_LEN, SessionId, TenantId};
use nylorun_domain::json::{utf16_len, utf16_prefix};
use nylorun_wire::cursor::{self, Binding, ListBinding, ListKey};

use super::lines;

pub(super) fn ids(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let text = text.as_ref();
    if let Ok(id) = SessionId::parse(text) {
        assert_eq!(id.as_str(), text);
        assert!(!text.is_empty() && utf16_len(text) <= MAX_ID_LEN && !text.chars().any(char::is_control));
    }
    for units in [0, 1, 7, 512] {
        let prefix = utf16_prefix(text, units);
        assert!(text.starts_with(prefix) && utf16_len(prefix) <= units);
    }
    names(text);
    quantities(text);
}

fn names(text: &str) {
    if grammar::is_puttable_key_id(text) {
        assert!(grammar::is_key_id(text));
    }
    if grammar::is_sandbox_id(text) {
        assert!(grammar::is_sandbox_grant(text) && grammar::grant_covers(text, text));
        assert!(grammar::is_relative_path(text), "an id is a path");
        let (below, grant) = (format!("{text}/x"), format!("{text}/*"));
        assert!(grammar::is_sandbox_grant(&grant) && grammar::grant_covers(&grant, &below));
        assert!(!grammar::grant_covers(&grant, text), "the prefix itself is not below it");
    }
    if grammar::is_tool_name(text) || grammar::is_label_key(text) || grammar::is_environment_name(text) {
        assert!(text.is_ascii() && !text.is_empty());
    }
    if let Ok(host) = grammar::parse_host_pattern(text) {
        assert_eq!(grammar::parse_host_pattern(&host).as_deref(), Ok(host.as_str()));
    }
}

fn quantities(text: &str) {
    if let Ok(ms) = grammar::parse_duration_ms(text) {
        assert!(ms > 0);
        assert_eq!(grammar::parse_duration_ms(&grammar::print_duration(ms)), Ok(ms));
    }
    if let Ok(bytes) = grammar::parse_size(text) {
        assert!(bytes > 0);
        assert_eq!(grammar::parse_size(&format!("{bytes}B")), Ok(bytes));
    }
    let _ = grammar::parse_memory_mib(text);
}

/// What is read from a cursor is what makes it; another session, tenant or filter never reads it.
pub(super) fn cursors(input: &[u8]) {
    let ([session, agent, given], held) = lines::<3>(input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (session, agent, given) = (SessionId::from_trusted(text(session)), text(agent), text(given));
    let tenant = TenantId::from_trusted("tn_1");
    let binding = Binding { tenant: &tenant, session: &session, agent: (!agent.is_empty()).then_some(&*agent) };
    let encoded = URL_SAFE_NO_PAD.encode(held);
    for cursor in [given, encoded.clone(), format!("h1.{encoded}")] {
        match cursor::read(&cursor, &session) {
            Ok(seq) if cursor.starts_with("h1.") => assert!(seq >= 0),
            Ok(seq) => assert_eq!(cursor::event(&session, seq), cursor),
            Err(_) => {}
        }
        if let Ok(seq) = cursor::read_history(&cursor, &binding) {
            assert_eq!(cursor::history(&binding, seq), cursor);
            assert_eq!(cursor::read(&cursor, &session), Ok(seq));
        }
        let lists = ListBinding { tenant: &tenant, route: "/v1/sessions", filters: &[("agentId", &agent)] };
        if let Ok(key) = cursor::read_list(&cursor, &lists) {
            made(&session, &binding, &lists, &key);
        }
    }
    let number = held.iter().fold(0_i64, |number, byte| number.wrapping_mul(251).wrapping_add(i64::from(*byte)));
    // Times are whole numbers that every JSON reader holds exactly.
    let key = ListKey { place: number % (1 << 53), id: text(held) };
    made(&session, &binding, &lists_of(&tenant, &[("agentId", &agent)]), &key);
}

fn lists_of<'a>(tenant: &'a TenantId, filters: &'a [(&'static str, &'a str)]) -> ListBinding<'a> {
    ListBinding { tenant, route: "/v1/sessions", filters }
}

fn made(session: &SessionId, binding: &Binding<'_>, lists: &ListBinding<'_>, key: &ListKey) {
    let seq = key.place & i64::MAX;
    let event = cursor::event(session, seq);
    let history = cursor::history(binding, seq);
    // A cursor that is too long is not looked at: no id is that long.
    if session.as_str().len() <= MAX_ID_LEN {
        assert_eq!(cursor::read(&event, session), Ok(seq));
        assert_eq!(cursor::read(&history, session), Ok(seq));
        assert_eq!(cursor::read_history(&history, binding), Ok(seq));
        let other = SessionId::from_trusted(format!("{session}x"));
        assert!(cursor::read(&event, &other).is_err());
        assert!(cursor::read_history(&history, &Binding { agent: Some("\n"), ..*binding }).is_err());
    }
    if key.id.len() <= MAX_ID_LEN {
        let list = cursor::list(lists, key);
        assert_eq!(cursor::read_list(&list, lists).as_ref(), Ok(key));
        assert!(cursor::read_list(&list, &ListBinding { route: "/v1/agents", ..*lists }).is_err());
    }
}
