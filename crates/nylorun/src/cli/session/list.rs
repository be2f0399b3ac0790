//! `nylorun session list`

use std::convert::Infallible;
use std::time::SystemTime;

use clap::Args;
use nylorun_client::{Effects, SessionFilter, SessionPage, SessionStatus, SessionSummary};

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::term::{Style, ago, one_line, table, visible};

/// `nylorun session list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session list
  nylorun session list --agent assistant --status failed
  nylorun session list --uncertain
  nylorun session list --json | jq -r '.sessions[].id'")]
pub(crate) struct ListArgs {
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions in this status: idle, running, paused, uncertain, completed, failed, cancelled, …
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<SessionStatus>,
    /// Only sessions with an effect whose outcome is unknown, those of ended turns too
    #[arg(long)]
    uncertain: bool,
    /// How many, at most 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Go on after a page: its `nextCursor`
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

fn status(text: &str) -> Result<SessionStatus, Infallible> {
    Ok(SessionStatus::from(text))
}

/// Lists them.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: ListArgs) -> Result<(), Failure> {
    let effects = if args.uncertain { Effects::Uncertain } else { Effects::Any };
    let narrowed = args.uncertain || args.agent.is_some() || args.status.is_some();
    let filter =
        SessionFilter { limit: args.limit, cursor: args.after, agent_id: args.agent, status: args.status, effects };
    let page = args.connect.connection()?.client()?.sessions(&filter).await?;
    args.output.print(&page, |page| match (page.sessions.is_empty(), narrowed) {
        (true, true) => "no such sessions\n".to_owned(),
        (true, false) => "no sessions: `nylorun chat AGENT` opens one\n".to_owned(),
        (false, _) => told(page, SystemTime::now(), &Style::of_stdout()),
    })
}

fn told(page: &SessionPage, now: SystemTime, style: &Style) -> String {
    let rows: Vec<[String; 5]> = page.sessions.iter().map(|session| row(session, now)).collect();
    // A server without pages tells no times.
    let timeless = rows.iter().all(|[.., opened, last_event]| opened.is_empty() && last_event.is_empty());
    let mut text = if timeless {
        let rows: Vec<[String; 3]> = rows.into_iter().map(|[id, agent, status, ..]| [id, agent, status]).collect();
        table(["SESSION", "AGENT", "STATUS"], &rows, style)
    } else {
        table(["SESSION", "AGENT", "STATUS", "OPENED", "LAST EVENT"], &rows, style)
    };
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("more: --after {}\n", visible(cursor)));
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
more: --after n
";
        assert_eq!(told(&serde_json::from_value(page).unwrap(), now, &Style::plain()), expected);
    }
}
