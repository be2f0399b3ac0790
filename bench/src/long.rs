//! A session with a long record, and a long list of sessions.

use std::path::Path;
use std::time::{Duration, Instant};

use nylorun_client::{Client, Command, Effects, Environment, Follow, OpenSession, Session, SessionFilter, Update};
use nylorun_domain::id::SessionId;
use nylorun_wire::cursor;

use crate::bulk::{ORIGINAL, Rows, idle_sessions, one_session};
use crate::report::{Report, Verdict, ms, percentile};
use crate::server::{AGENT, Server, fresh};
use crate::start::IDLE_SESSIONS;
use crate::{Database, Failure};

/// Events of the long session.
const EVENTS: i64 = 10_000;
/// Events of a turn of one model step, one of them internal.
const EVENTS_OF_A_TURN: i64 = 4;
/// How often each thing is measured.
const TIMES: usize = 50;

/// A session of 10,000 events.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let name = database.name();
    let home = tempfile::tempdir()?;
    let own = fresh(database, "bench_long").await?;
    one_session(home.path(), &own, 1).await?;
    let rows = Rows::open(home.path(), &own).await?;
    rows.add_turns(EVENTS / EVENTS_OF_A_TURN - 1).await?;
    rows.analyze().await?;
    drop(rows);

    let server = Server::start(home.path(), &own)?;
    let client = server.client()?;
    let mut first = Vec::new();
    for _ in 0..TIMES {
        first.push(first_frame(&client, ORIGINAL, EVENTS - 3).await?);
    }
    time(report, name, "session of 10,000 events: follower near its end to the first frame", &mut first, 20.0);
    for (place, what) in [(0, "beginning"), (EVENTS / 2, "middle")] {
        let mut page = Vec::new();
        for _ in 0..TIMES {
            page.push(history_page(&client, &server, ORIGINAL, place).await?);
        }
        time(report, name, &format!("session of 10,000 events: history page of 100 at its {what}"), &mut page, 10.0);
    }
    drop(server);

    let first = first_fold(home.path(), &own).await?;
    let (mut long, mut short, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..TIMES / 10 {
        let server = Server::start(home.path(), &own)?;
        let client = server.client()?;
        // What any first turn of a process pays is paid.
        turn(&opened(&client, &format!("warm-{number}")).await?).await?;
        turn(&opened(&client, &format!("short-{number}")).await?).await?;
        drop(server);
        let server = Server::start(home.path(), &own)?;
        let client = server.client()?;
        turn(&client.session(format!("warm-{number}"))).await?;
        short.push(turn(&client.session(format!("short-{number}"))).await?);
        long.push(turn(&client.session(ORIGINAL)).await?);
        again.push(turn(&client.session(ORIGINAL)).await?);
    }
    let (long, again) = (percentile(&mut long, 0.5), percentile(&mut again, 0.5));
    let fold = long.saturating_sub(again);
    let figure = format!(
        "{}: its next turn takes {} and the one after it {}; in a session of one turn before, {}; the very first fold, \
         of all events without a snapshot, {}",
        ms(fold),
        ms(long),
        ms(again),
        ms(percentile(&mut short, 0.5)),
        ms(first.saturating_sub(again)),
    );
    let what = "session of 10,000 events: fold of the transcript after a restart";
    report.row(name, what, figure, "< 20 ms", Verdict::at_most(fold.as_secs_f64(), 0.02));
    Ok(())
}

/// The time of a turn before which all of the record is folded, since this session was written at once. It leaves a
/// snapshot behind, as a session that is talked to does on its way to this length.
async fn first_fold(home: &Path, own: &Database) -> Result<Duration, Failure> {
    let server = Server::start(home, own)?;
    let client = server.client()?;
    turn(&opened(&client, "warm").await?).await?;
    let took = turn(&client.session(ORIGINAL)).await?;
    let rows = Rows::open(home, own).await?;
    let left = async {
        while !rows.has_snapshot().await? {
            tokio::task::yield_now().await;
        }
        Ok::<_, Failure>(())
    };
    tokio::time::timeout(Duration::from_secs(30), left).await.map_err(|_| "no snapshot was left")??;
    Ok(took)
}

fn time(report: &mut Report, name: &str, what: &str, times: &mut [Duration], limit_ms: f64) {
    let p50 = percentile(times, 0.5);
    let figure = format!("p50 {}, p99 {}", ms(p50), ms(percentile(times, 0.99)));
    report.row(name, what, figure, &format!("< {limit_ms} ms"), Verdict::at_most(p50.as_secs_f64(), limit_ms / 1e3));
}

/// From the request for what follows an event until the first event came.
pub(crate) async fn first_frame(client: &Client, id: &str, after: i64) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let after = Some(cursor::event(&SessionId::from_trusted(id), after));
    let mut events = client.session(id).events(Follow { after, ..Follow::default() });
    match events.next().await.ok_or("the stream ended")?? {
        Update::Event(_) => Ok(begun.elapsed()),
        Update::Delta(_) | Update::Interrupted { .. } => Err("something else came first".into()),
    }
}

/// A page of 100 records after this place.
pub(crate) async fn history_page(client: &Client, server: &Server, id: &str, after: i64) -> Result<Duration, Failure> {
    let tenant = server.tenant_id()?;
    let session = SessionId::from_trusted(id);
    let binding = cursor::Binding { tenant: &tenant, session: &session, agent: None };
    let after = cursor::history(&binding, after);
    let begun = Instant::now();
    let page = client.session(id).history(Some(&after), Some(100)).await?;
    let took = begun.elapsed();
    if page.items.is_empty() { Err("the page is empty".into()) } else { Ok(took) }
}

async fn opened(client: &Client, id: &str) -> Result<Session, Failure> {
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "bench") };
    client.open_session(id, &open).await?;
    Ok(client.session(id))
}

/// From the message until its turn's end was seen, by a stream that is opened after the message was taken.
async fn turn(session: &Session) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let accepted = session.command(&Command::text("hi")?).await?;
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    loop {
        match events.next().await.ok_or("the stream ended")?? {
            Update::Event(event) if event.kind == "turn.completed" => return Ok(begun.elapsed()),
            Update::Event(event) if event.ends_turn() => return Err(event.text.into()),
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

/// Pages of a list of 100,000 sessions.
pub(crate) async fn lists(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let name = database.name();
    let home = tempfile::tempdir()?;
    let own = fresh(database, "bench_lists").await?;
    idle_sessions(home.path(), &own, IDLE_SESSIONS).await?;
    Rows::open(home.path(), &own).await?.analyze().await?;
    let server = Server::start(home.path(), &own)?;
    let client = server.client()?;
    let mut filter = all_sessions(100);
    let mut pages = list_pages(&client, &mut filter).await?;
    time(report, name, "list of 100,000 sessions: page of 100, the first 50 pages", &mut pages, 20.0);
    let mut filter = SessionFilter { agent_id: Some(AGENT.to_owned()), ..all_sessions(100) };
    let mut pages = list_pages(&client, &mut filter).await?;
    time(report, name, "list of 100,000 sessions: page of 100 of one agent", &mut pages, 20.0);
    Ok(())
}

/// All sessions, in pages of this size.
pub(crate) fn all_sessions(limit: u16) -> SessionFilter {
    SessionFilter { limit, cursor: None, agent_id: None, status: None, owner_user_id: None, effects: Effects::Any }
}

/// The first pages of a list, each from the request until it was read.
pub(crate) async fn list_pages(client: &Client, filter: &mut SessionFilter) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        let page = client.sessions(filter).await?;
        times.push(begun.elapsed());
        filter.cursor = page.next_cursor;
    }
    Ok(times)
}
