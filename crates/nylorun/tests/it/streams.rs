//! Followers of the real binary in trouble: slow ones, cut ones, a thousand at once, and servers that go away.

use std::time::{Duration, Instant};

use nylorun_client::{Client, Command, Environment, Event, Follow, OpenSession, Reconnect, SessionStatus, Update};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::database::{Database, postgres};
use crate::drill::{self, AGENT};
use crate::server::{Server, Setup};
use crate::stream_client::{Follower, Frame, Target};

/// What is waited for longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn each(name: &str) -> Vec<Database> {
    [Some(Database::Sqlite), postgres(name).await].into_iter().flatten().collect()
}

/// A session without a workspace.
async fn open(server: &Server, id: &str) {
    drill::prepare(server).await.expect("it can be prepared");
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "u") };
    server.client().open_session(id, &open).await.expect("it can be opened");
}

/// One turn, from its message to its end.
async fn turn(client: &Client, id: &str, message: &str) {
    let session = client.session(id);
    let accepted = session.command(&Command::text(message).expect("a key can be made")).await.expect("it is free");
    let mut events = session.events(Follow { after: accepted.cursor, reconnect: QUICK, ..Follow::default() });
    loop {
        let update = events.next().await.expect("it goes on").expect("it goes on");
        if matches!(update, Update::Event(event) if event.ends_turn()) {
            return;
        }
    }
}

const QUICK: Reconnect = Reconnect {
    first: Duration::from_millis(20),
    longest: Duration::from_millis(200),
    answer_within: Duration::from_secs(30),
};

async fn record(client: &Client, id: &str) -> Vec<Event> {
    client.session(id).history(None, None).await.expect("it has a history").items
}

fn frames(events: &[Event]) -> Vec<Frame> {
    events.iter().map(Frame::of).collect()
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit).expect("it is small")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_at_any_byte_lose_and_repeat_nothing() {
    for database in each("cuts").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        open(&server, "s").await;
        let (ended, end) = watch::channel(None);
        let mut cutters = JoinSet::new();
        for seed in 1..=12 {
            cutters.spawn(follow_with_cuts(Target::new(&server, "s"), Random(seed * 0x9e37_79b9), end.clone()));
        }
        let client = server.client();
        for number in 0..15 {
            turn(&client, "s", &format!("message {number}: é😀 {}", "long ".repeat(number * 40))).await;
        }
        let wanted = frames(&record(&client, "s").await);
        assert_eq!(wanted.len(), 15 * 3);
        ended.send_replace(wanted.last().map(|frame| frame.id.clone()));
        let cut = async { cutters.join_all().await };
        for (seen, cuts) in tokio::time::timeout(PATIENCE, cut).await.expect("all followers reach the end") {
            assert_eq!(seen, wanted);
            assert!(cuts > 10, "{cuts} cuts");
        }
    }
}

/// Follows until `end` is known and seen, on connections that are cut after some bytes each.
async fn follow_with_cuts(
    target: Target,
    mut random: Random,
    mut end: watch::Receiver<Option<String>>,
) -> (Vec<Frame>, usize) {
    let (mut seen, mut cuts) = (Vec::<Frame>::new(), 0);
    loop {
        let last = seen.last().map(|frame| frame.id.clone());
        let known_end = end.borrow_and_update().clone();
        if last.is_some() && known_end == last {
            return (seen, cuts);
        }
        let mut follower = target.follow(last.as_deref()).await.expect("the server is there");
        // Within the head, within the first frame, or after some; now and then before anything.
        let limit = [300, 1_500, 6_000][random.below(3)];
        let bytes = random.below(limit);
        tokio::select! {
            came = follower.read_bytes(bytes, known_end.as_deref()) => {
                cuts += 1;
                seen.extend(came);
            }
            // Nothing more might come: from now on the end is known.
            _ = end.changed(), if known_end.is_none() => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_takes_nothing_is_cut_slows_nobody_and_goes_on_where_it_was() {
    const SLOW: usize = 16;
    const STALL: Duration = Duration::from_secs(4);
    /// What a follower may hold of the record, in MB; the whole record is more.
    const HELD: f64 = 3.0;
    for database in each("slow").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let stall = format!("{}ms", STALL.as_millis());
        let server = database.setup(Setup::new(home.path()).with("NYLORUN_STALL_LIMIT", &stall)).start();
        open(&server, "s").await;
        let client = server.client();
        // More than the kernel keeps for a connection.
        let long = "x".repeat(150_000);
        for _ in 0..16 {
            turn(&client, "s", &long).await;
        }
        let before_rss = rss_mb(&server);
        let slow = Target::new(&server, "s").with_receive_buffer(4_096);
        let mut followers: Vec<Follower> = Vec::new();
        let connected = Instant::now();
        for _ in 0..SLOW {
            followers.push(slow.follow(None).await.expect("the server is there"));
        }
        until(|| connections(&server) >= SLOW).await;
        // They hold up neither the turn nor who follows it, and are still there when it has ended.
        turn(&client, "s", "meanwhile").await;
        assert!(connections(&server) >= SLOW, "a turn took {:?}", connected.elapsed());
        let grown = rss_mb(&server) - before_rss;
        assert!(grown < HELD * SLOW as f64, "{SLOW} followers that take nothing hold {grown:.0} MB");
        // The test's own client has one or two.
        until(|| connections(&server) <= 2).await;
        assert!(connected.elapsed() >= STALL, "they were given their time");

        let wanted = frames(&record(&client, "s").await);
        for follower in followers.iter_mut().take(3) {
            let mut seen = Vec::new();
            // What was on its way when the server gave up.
            while let Some(frame) = follower.next().await {
                seen.push(frame);
            }
            assert!(seen.len() < wanted.len(), "it was cut");
            let last = seen.last().map(|frame| frame.id.clone());
            let mut again = slow.follow(last.as_deref()).await.expect("the server is there");
            while seen.len() < wanted.len() {
                seen.push(again.next().await.expect("a follower that reads is not cut"));
            }
            assert_eq!(seen, wanted);
        }
    }
}

/// Memory that the server holds, in MB.
fn rss_mb(server: &Server) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it holds memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

/// Connections of clients that the server holds: those to its database are none.
fn connections(server: &Server) -> usize {
    let (_, port) = server.url.rsplit_once(':').expect("the URL has a port");
    let local = format!(":{:04X}", port.parse::<u16>().expect("a port"));
    let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", server.pid())).expect("it runs");
    let open = table.lines().skip(1).filter(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (here, state) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        // Established, or closed by the client alone.
        here.ends_with(&local) && matches!(state, "01" | "08")
    });
    open.count()
}

async fn until(mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let wait = async {
        while !holds() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes to hold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_followers_resume_across_a_kill_and_a_stop_with_each_event_once() {
    for database in each("restarts").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let listen = format!("127.0.0.1:{}", port.expect("a port is free").port());
        let setup = database.setup(Setup { listen, ..Setup::new(home.path()) });
        let mut server = setup.start();
        open(&server, "s").await;
        let client = server.client();
        let mut followers = JoinSet::new();
        for _ in 0..100 {
            followers.spawn(follow_to_the_end(server.client()));
        }
        turn(&client, "s", "first").await;

        let waits = |text: &str| format!(r#"[{{"delayMs": 300, "text": "{text}"}}]"#);
        let session = client.session("s");
        session.command(&Command::text(waits("killed")).expect("a key")).await.expect("it is free");
        server.kill();
        server = setup.start();
        until_it_ended(&client).await;

        session.command(&Command::text(waits("stopped")).expect("a key")).await.expect("it is free");
        assert!(server.stop().success());
        let server = setup.start();
        until_it_ended(&server.client()).await;
        turn(&server.client(), "s", LAST).await;

        let wanted = record(&server.client(), "s").await;
        assert_eq!(wanted.len(), 4 * 3);
        let all = async { followers.join_all().await };
        for seen in tokio::time::timeout(PATIENCE, all).await.expect("all followers reach the end") {
            assert_eq!(seen, frames(&wanted));
        }
    }
}

const LAST: &str = "the last one";

async fn follow_to_the_end(client: Client) -> Vec<Frame> {
    let mut events = client.session("s").events(Follow { reconnect: QUICK, ..Follow::default() });
    let mut seen = Vec::new();
    loop {
        let update = events.next().await.expect("it goes on").expect("it goes on");
        let Update::Event(event) = update else { continue };
        seen.push(Frame::of(&event));
        if event.ends_turn() && event.payload["output"] == LAST {
            return seen;
        }
    }
}

async fn until_it_ended(client: &Client) {
    let mut events = client.session("s").events(Follow { reconnect: QUICK, ..Follow::default() });
    loop {
        let view = client.session("s").view().await.expect("it is there");
        match view.status {
            SessionStatus::Completed => return,
            SessionStatus::Failed | SessionStatus::Cancelled => panic!("the turn ended as {:?}", view.status),
            _ => drop(events.next().await),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_share_one_encoding_of_each_event() {
    const FOLLOWERS: usize = 1_000;
    allow_descriptors(4 * FOLLOWERS as u64);
    for database in each("thousand").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        open(&server, "s").await;
        let client = server.client();
        turn(&client, "s", "first").await;
        let before = frames(&record(&client, "s").await);

        let target = Target::new(&server, "s");
        let mut followers = Vec::new();
        for _ in 0..FOLLOWERS {
            // Who was given the last event has read the record to its end, and listens.
            let after = &before[before.len() - 2].id;
            let mut follower = target.follow(Some(after)).await.expect("there are descriptors");
            assert_eq!(follower.next().await.as_ref(), before.last());
            followers.push(follower);
        }
        let frames_before = frames_made(&server).await;
        for number in 0..10 {
            turn(&client, "s", &format!("message {number}")).await;
        }
        let wanted = frames(&record(&client, "s").await).split_off(before.len());
        let mut tasks = JoinSet::new();
        for mut follower in followers {
            let count = wanted.len();
            tasks.spawn(async move {
                let mut seen = Vec::new();
                while seen.len() < count {
                    seen.push(follower.next().await.expect("it goes on"));
                }
                seen
            });
        }
        let all = async { tasks.join_all().await };
        for seen in tokio::time::timeout(PATIENCE, all).await.expect("all of them see all of it") {
            assert_eq!(seen, wanted);
        }
        // Those who wait for the turns' ends begin in the record: at most each event once more for them.
        let made = frames_made(&server).await - frames_before;
        assert!(made <= 2 * wanted.len() as u64, "{made} frames of {} events for {FOLLOWERS} followers", wanted.len());
    }
}

async fn frames_made(server: &Server) -> u64 {
    let status = server.tenant().status().await.expect("it answers");
    status.other["counters"]["frames"].as_u64().expect("frames are counted")
}

/// Lets this process, and those that it starts, open so many files.
fn allow_descriptors(count: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= count) {
        return;
    }
    let more = Rlimit { current: Some(count), maximum: limit.maximum };
    setrlimit(Resource::Nofile, more).expect("2 descriptors a follower are allowed (ulimit -Hn)");
}
