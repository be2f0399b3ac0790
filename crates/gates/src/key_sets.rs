//! Fetching issuers' key sets through the guarded client (api 1.6, trust 4).

use std::time::Duration;

use bytes::Bytes;
use nylorun_ports::BoxFuture;
use nylorun_ports::key_sets::KeySets;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::time::timeout;
use url::Url;

use crate::outbound::{Outbound, OutboundRequest};

/// How long a fetch may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Largest key set, in bytes.
const MAX_SET: usize = 256 << 10;

/// Fetches key sets. The host's policy for private addresses holds for them too.
#[derive(Debug)]
pub struct KeySetGate(Outbound);

impl KeySetGate {
    /// Over this client.
    pub fn new(outbound: Outbound) -> Self {
        Self(outbound)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let request = OutboundRequest { method: Method::GET, url, headers, body: Bytes::new(), max_answer: MAX_SET };
        let mut answer = self.0.send(request).await.map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            return Err(format!("the answer's status is {}", answer.status()));
        }
        let mut document = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| error.to_string())? {
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }
}

impl KeySets for KeySetGate {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let fetched = timeout(TIME_LIMIT, self.get(url)).await;
            fetched.unwrap_or_else(|_| Err(format!("no answer within {} seconds", TIME_LIMIT.as_secs())))
        })
    }
}
