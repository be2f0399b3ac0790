//! What a server is started with.

use std::time::Duration;

/// A server's settings.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The exact values of `Host` that are answered, lower-case, with the port: `127.0.0.1:4000` (api 1.4).
    pub allowed_hosts: Vec<String>,
    /// What clients call this server, without a slash at its end, where it stands behind another one (api 1.7).
    pub public_url: Option<String>,
    /// This program's version, for `/health` and the OpenAPI documents.
    pub version: String,
    /// What a client may take up.
    pub limits: Limits,
}

/// What clients may take up. Times are how long a client may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; further ones wait in the listener's queue.
    pub connections: usize,
    /// Time to send a request's head, and to stay without a request on a kept connection.
    pub head: Duration,
    /// Time to send a request's body.
    pub body: Duration,
    /// Time in which a client must take what was sent before more is.
    pub write: Duration,
    /// Bytes of request bodies that are read at once, of all clients.
    pub bodies: usize,
    /// How long requests that run may still take when the server closes.
    pub grace: Duration,
    /// Time between two keep-alive comments of an event stream.
    pub keepalive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 8_192,
            head: Duration::from_secs(60),
            body: Duration::from_secs(30),
            write: Duration::from_secs(20),
            bodies: 256 << 20,
            grace: Duration::from_secs(10),
            keepalive: Duration::from_secs(15),
        }
    }
}

/// The hosts that a server on a loopback address answers for (api 1.4), and `others` with the same port.
pub fn loopback_hosts(port: u16, others: &[String]) -> Vec<String> {
    let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
    let names = loopback.iter().chain(others).map(|host| host.to_ascii_lowercase());
    let mut hosts: Vec<String> = names.clone().map(|host| format!("{host}:{port}")).collect();
    if port == 80 {
        hosts.extend(names);
    }
    hosts
}
