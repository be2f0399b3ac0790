//! Listening on a connection of its own, which is made again when it is lost.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client};

use super::connection::{Driver, Target};
use super::execute;
use crate::db::error::DbError;
use crate::db::{Notice, Notices};

/// Notices that may wait for their reader; when there are more, it gets a gap instead.
const BACKLOG: usize = 4_096;
/// The longest pause between two tries to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Listens from now on: what is announced after this has returned is heard, or there is a gap.
pub(super) async fn listen(target: Target, channels: &[&'static str]) -> Result<Notices, DbError> {
    let channels = channels.to_vec();
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let first = subscribe(&target, &channels, sender.clone()).await?;
    let task = tokio::spawn(keep(target, channels, sender, first));
    Ok(Notices::new(receiver, task.abort_handle()))
}

/// A connection that is listening, and the task that reads it.
struct Subscription {
    _client: Client,
    reader: AbortOnDrop,
}

/// A task that must not outlive its owner.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn keep(
    target: Target,
    channels: Vec<&'static str>,
    sender: mpsc::Sender<Notice>,
    mut subscription: Subscription,
) {
    while !sender.is_closed() {
        // Ends when the connection does, or when nobody wants notices any more.
        let _ = (&mut subscription.reader.0).await;
        let Some(next) = again(&target, &channels, &sender).await else { return };
        subscription = next;
        // What was announced in between is lost.
        if sender.send(Notice::Gap).await.is_err() {
            return;
        }
    }
}

/// Connects again, with longer and longer pauses; `None` when nobody wants notices any more.
async fn again(target: &Target, channels: &[&'static str], sender: &mpsc::Sender<Notice>) -> Option<Subscription> {
    let mut pause = Duration::from_millis(50);
    while !sender.is_closed() {
        match subscribe(target, channels, sender.clone()).await {
            Ok(subscription) => return Some(subscription),
            Err(error) => tracing::warn!(%error, "cannot listen for announcements"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    None
}

async fn subscribe(
    target: &Target,
    channels: &[&'static str],
    sender: mpsc::Sender<Notice>,
) -> Result<Subscription, DbError> {
    let (client, driver) = target.connect().await?;
    let reader = AbortOnDrop(tokio::spawn(read(driver, sender)));
    target.begin_session(&client).await?;
    for channel in channels {
        let listen = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
        client.batch_execute(&listen).await.map_err(|error| execute::failure(&listen, &error))?;
    }
    Ok(Subscription { _client: client, reader })
}

/// Passes notices on until the connection ends.
async fn read(mut driver: Driver, sender: mpsc::Sender<Notice>) {
    let mut missed = false;
    while let Some(Ok(message)) = poll_fn(|context| driver.poll_message(context)).await {
        let AsyncMessage::Notification(notification) = message else { continue };
        // A reader that is behind must not hold up the connection.
        if missed && sender.try_send(Notice::Gap).is_err() {
            continue;
        }
        let (channel, payload) = (notification.channel().to_owned(), notification.payload().to_owned());
        missed = match sender.try_send(Notice::Message { channel, payload }) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) => true,
            Err(TrySendError::Closed(_)) => return,
        };
    }
}
