//! A database of a million events: what each takes on disk, and whether anything takes longer for their number.

use std::path::Path;
use std::time::Duration;

use nylorun_client::Environment;

use crate::bulk::{Rows, one_session};
use crate::long::{all_sessions, first_frame, history_page, list_pages};
use crate::report::{Report, Verdict, ms, percentile};
use crate::server::{Server, fresh};
use crate::turns::User;
use crate::{Database, Failure};

/// Turns of each session, of four events.
const TURNS: usize = 10;
const EVENTS_OF_A_SESSION: i64 = 40;
/// Sessions of the small database, and of the large one.
const FEW: i64 = 250;
const MANY: i64 = 25_000;
/// How often each thing is measured.
const TIMES: i64 = 100;
/// What noise may add to a time that does not depend on the number of events.
const NOISE: f64 = 1.5;

/// Measures all of it.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let name = database.name();
    let home = tempfile::tempdir()?;
    let own = fresh(database, "bench_events").await?;
    one_session(home.path(), &own, TURNS).await?;
    let rows = Rows::open(home.path(), &own).await?;
    rows.copy_session(1, FEW).await?;
    rows.copy_events(1, FEW).await?;
    rows.analyze().await?;
    drop(rows);
    let few = Times::take(home.path(), &own, FEW).await?;

    let rows = Rows::open(home.path(), &own).await?;
    rows.copy_session(FEW + 1, MANY).await?;
    let before = rows.bytes().await?;
    rows.copy_events(FEW + 1, MANY).await?;
    let added = ((MANY - FEW) * EVENTS_OF_A_SESSION) as f64;
    let mut figure = format!("{:.0} bytes", (rows.bytes().await? - before) / added);
    if let Some(bytes) = rows.index_bytes().await? {
        let all = (MANY * EVENTS_OF_A_SESSION) as f64;
        figure.push_str(&format!(", {:.0} of them in indexes", bytes / all));
    }
    report.row(name, "an event on disk, of turns that say \"hi\"", figure, "", Verdict::NoTarget);
    drop(rows);
    let many = Times::take(home.path(), &own, MANY).await?;
    for ((what, few), (_, many)) in few.named().into_iter().zip(many.named()) {
        let figure = format!("p50 {} among 10,000 events, {} among 1,000,000", ms(few), ms(many));
        let verdict = Verdict::at_most(many.as_secs_f64(), NOISE * few.as_secs_f64() + 0.001);
        report.row(name, what, figure, "no growth: at most half more and 1 ms", verdict);
    }
    Ok(())
}

/// Medians.
struct Times {
    turn: Duration,
    follow: Duration,
    history: Duration,
    list: Duration,
}

impl Times {
    async fn take(home: &Path, database: &Database, sessions: i64) -> Result<Self, Failure> {
        let server = Server::start(home, database)?;
        let client = server.client()?;
        let mut turns = Vec::new();
        let mut user = User::new(&client, &format!("beside-{sessions}"), Environment::Without).await?;
        for _ in 0..TIMES {
            turns.push(user.turn("hi").await?);
        }
        let (mut follow, mut history) = (Vec::new(), Vec::new());
        for number in 0..TIMES {
            // All over the table, each session once.
            let id = format!("idle-{}", 1 + number * sessions / TIMES);
            follow.push(first_frame(&client, &id, EVENTS_OF_A_SESSION - 5).await?);
            history.push(history_page(&client, &server, &id, 0).await?);
        }
        let mut filter = all_sessions(50);
        let mut list = list_pages(&client, &mut filter).await?;
        Ok(Self {
            turn: percentile(&mut turns, 0.5),
            follow: percentile(&mut follow, 0.5),
            history: percentile(&mut history, 0.5),
            list: percentile(&mut list, 0.5),
        })
    }

    fn named(&self) -> [(&'static str, Duration); 4] {
        [
            ("turn of one model step", self.turn),
            ("follower of a session not read before, to the first frame", self.follow),
            ("history page of the same session", self.history),
            ("page of 50 sessions", self.list),
        ]
    }
}
