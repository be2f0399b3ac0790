//! The listener: connections, their limits, and the end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nylorun_app::App;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Server;
use crate::config::ServerConfig;
use crate::pipeline::{MAX_BODY, respond};
use crate::stage::{Stage, Stages};
use crate::stall::StallGuard;
use crate::unreadable::OwnRefusals;

/// Most bytes of a request's head: a token of 16 KiB and room for the rest. `unreadable.rs` names both limits.
pub(crate) const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
/// How long to wait when the process has no descriptor left for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why serving ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings allow no connection.
    #[error("the limit of connections is zero")]
    NoConnections,
}

/// Serves until the server's stage is [`Stage::Closing`], then lets requests that run finish within the grace.
///
/// # Errors
/// Settings with which nothing could be served. Faults of single connections are logged.
pub async fn serve(
    listener: TcpListener,
    app: App,
    config: ServerConfig,
    mut stages: Stages,
) -> Result<(), ServeError> {
    let limits = config.limits;
    if limits.connections == 0 {
        return Err(ServeError::NoConnections);
    }
    let room = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let bodies = Arc::new(Semaphore::new(limits.bodies.clamp(MAX_BODY, Semaphore::MAX_PERMITS)));
    let server = Arc::new(Server { app, config, stages: stages.clone(), bodies });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stages.reached(Stage::Closing) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let connection = serve_connection(server.clone(), stream, stages.clone());
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let finished = tokio::time::timeout(limits.grace, async { while connections.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        tracing::warn!(connections = connections.len(), "requests were cut off when the server closed");
    }
    Ok(())
}

/// A connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn serve_connection(server: Arc<Server>, stream: TcpStream, mut stages: Stages) {
    // Answers are small and are waited for: without this each would wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let limits = server.config.limits;
    let io = TokioIo::new(OwnRefusals::new(StallGuard::new(stream, limits.write)));
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(respond(server, request).await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_HEAD)
            .half_close(false)
            .serve_connection(io, service)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stages.reached(Stage::Closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
