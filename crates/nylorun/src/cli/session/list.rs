//! `nylorun session list`

use std::time::SystemTime;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nylorun_client::{Client, Effects, Error, SessionFilter, SessionPage, SessionStatus, SessionSummary};

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::term::{Style, ago, one_line, table, visible};

/// Most sessions that a server gives in one page.
const LARGEST_PAGE: u16 = 200;

/// `nylorun session list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session list
  nylorun session list --agent assistant --status failed
  nylorun session list --uncertain
  nylorun session list --limit 10 --after CURSOR
  nylorun session list --all --json | jq -r '.sessions[].id'

The newest come first. When there are more, the last line says how to go on; in JSON, nextCursor is not null.")]
pub(crate) struct ListArgs {
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions in this status
    #[arg(long, value_name = "STATUS", value_parser = status())]
    status: Option<SessionStatus>,
    /// Only sessions of this person
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only sessions with an effect whose outcome is unknown, those of ended turns too
    #[arg(long)]
    uncertain: bool,
    /// How many, at most 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = page_size)]
    limit: u16,
    /// Go on where a list ended, with the same filters: its `nextCursor`
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// All of them, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

fn page_size(text: &str) -> Result<u16, String> {
    let size = text.parse().ok().filter(|size| (1..=LARGEST_PAGE).contains(size));
    size.ok_or_else(|| format!("give a whole number from 1 to {LARGEST_PAGE}; --all gives all of them"))
}

fn status() -> impl TypedValueParser<Value = SessionStatus> {
    let words = SessionStatus::KNOWN.iter().map(SessionStatus::as_str);
    PossibleValuesParser::new(words.collect::<Vec<_>>()).map(|word| SessionStatus::from(word.as_str()))
}

/// How many sessions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    All,
    AtMost(u16),
}

/// Lists them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let extent = if args.all { Extent::All } else { Extent::AtMost(args.limit) };
    let filter = SessionFilter {
        limit: LARGEST_PAGE,
        cursor: args.after,
        agent_id: args.agent,
        status: args.status,
        owner_user_id: args.owner,
        effects: if args.uncertain { Effects::Uncertain } else { Effects::Any },
    };
    let nothing = if is_narrowed(&filter) { "no such sessions\n" } else { NO_SESSIONS };
    let found = collect(&args.connect.connection()?.client()?, filter, extent).await?;
    args.output.print(&found, |found| told(found, nothing, SystemTime::now(), &Style::of_stdout()))
}

const NO_SESSIONS: &str = "no sessions: `nylorun chat AGENT` opens one\n";

fn is_narrowed(filter: &SessionFilter) -> bool {
    let SessionFilter { limit: _, cursor, agent_id, status, owner_user_id, effects } = filter;
    let by_effects = match effects {
        Effects::Any => false,
        Effects::Uncertain => true,
    };
    cursor.is_some() || agent_id.is_some() || status.is_some() || owner_user_id.is_some() || by_effects
}

/// Goes from page to page, since a page may be short or empty where more follow.
async fn collect(client: &Client, mut filter: SessionFilter, extent: Extent) -> Result<SessionPage, Error> {
    let mut found = SessionPage { sessions: Vec::new(), next_cursor: filter.cursor.take() };
    loop {
        filter.limit = match extent {
            Extent::All => LARGEST_PAGE,
            Extent::AtMost(limit) => limit.saturating_sub(u16::try_from(found.sessions.len()).unwrap_or(u16::MAX)),
        };
        if filter.limit == 0 {
            return Ok(found);
        }
        filter.cursor = found.next_cursor.take();
        let page = client.sessions(&filter).await?;
        found.sessions.extend(page.sessions);
        // A server that answers the cursor that it was given would be asked for ever.
        found.next_cursor = page.next_cursor.filter(|next| Some(next) != filter.cursor.as_ref());
        if found.next_cursor.is_none() {
            return Ok(found);
        }
    }
}

fn told(found: &SessionPage, nothing: &str, now: SystemTime, style: &Style) -> String {
    if found.sessions.is_empty() {
        return nothing.to_owned();
    }
    let rows: Vec<[String; 5]> = found.sessions.iter().map(|session| row(session, now)).collect();
    // A server without pages tells no times.
    let timeless = rows.iter().all(|[.., opened, last_event]| opened.is_empty() && last_event.is_empty());
    let mut text = if timeless {
        let rows: Vec<[String; 3]> = rows.into_iter().map(|[id, agent, status, ..]| [id, agent, status]).collect();
        table(["SESSION", "AGENT", "STATUS"], &rows, style)
    } else {
        table(["SESSION", "AGENT", "STATUS", "OPENED", "LAST EVENT"], &rows, style)
    };
    if let Some(cursor) = &found.next_cursor {
        text.push_str(&format!("there are more: add --all, or go on with --after {}\n", visible(cursor)));
    }
    text
}

fn row(session: &SessionSummary, now: SystemTime) -> [String; 5] {
    let when = |time: &Option<String>| time.as_deref().map(|time| ago(time, now)).unwrap_or_default();
    [
        one_line(&session.id, 60),
        one_line(&session.agent_id, 30),
        one_line(session.status.as_str(), 20),
        when(&session.created_at),
        when(&session.last_event_at),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_stand_in_columns() {
        let page = json!({"sessions": [
            {"id": "s1", "agentId": "assistant", "ownerUserId": "o", "status": "running", "activeTurnId": "t",
                "createdAt": "1970-01-01T00:00:00.000Z", "lastEventAt": "1970-01-01T00:01:30.000Z"},
            {"id": "s2", "agentId": "a", "ownerUserId": "o", "status": "idle", "activeTurnId": null},
        ], "nextCursor": "n"});
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(120);
        let expected = "\
SESSION  AGENT      STATUS   OPENED     LAST EVENT
s1       assistant  running  2 min ago  30 s ago
s2       a          idle
there are more: add --all, or go on with --after n
";
        assert_eq!(told(&serde_json::from_value(page).unwrap(), NO_SESSIONS, now, &Style::plain()), expected);
    }
}
