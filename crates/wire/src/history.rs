//! Pages of a session's history on the wire (api 2.3).

use nylorun_domain::json::Json;

use crate::cursor::{self, Binding};

/// Whether a page was asked for with `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// The whole rest: `{items, cursor}`.
    Whole,
    /// At most `limit` records looked at: `{items, cursor, tail}`.
    Limited {
        /// Whether nothing followed the page when it was read.
        tail: bool,
    },
}

/// The answer's body, of bodies that are JSON already. `last` is the last record read, or the one from which reading
/// began.
pub fn page<'a>(
    binding: &Binding<'_>,
    items: impl Iterator<Item = &'a str>,
    last: Option<i64>,
    paging: Paging,
) -> Json {
    let mut out = String::from("{\"items\":[");
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(item);
    }
    out.push_str("],\"cursor\":");
    match (last, paging) {
        (None, _) => out.push_str("null"),
        (Some(seq), Paging::Whole) => push_quoted(&mut out, &cursor::event(binding.session, seq)),
        (Some(seq), Paging::Limited { .. }) => push_quoted(&mut out, &cursor::history(binding, seq)),
    }
    if let Paging::Limited { tail } = paging {
        out.push_str(if tail { ",\"tail\":true" } else { ",\"tail\":false" });
    }
    out.push('}');
    Json::from_trusted(out)
}

/// Cursors hold letters, digits, `-`, `_` and `.` only: nothing to escape.
fn push_quoted(out: &mut String, cursor: &str) {
    out.push('"');
    out.push_str(cursor);
    out.push('"');
}
