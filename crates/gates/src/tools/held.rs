//! Calls that run on their own, by key: a caller that goes away does not end them, and a second one joins them.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::id::EffectId;
use nylorun_ports::http_tools::HttpToolAnswer;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The calls that run now. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HeldCalls(Arc<Mutex<HashMap<EffectId, Held>>>);

/// A call that runs.
#[derive(Clone)]
pub(super) struct Held {
    request_hash: String,
    answer: watch::Receiver<Option<HttpToolAnswer>>,
    task: AbortHandle,
}

/// Another request runs under this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherRequest;

impl HeldCalls {
    /// The call that runs under this key, or `call`, begun.
    pub(super) fn join_or_begin(
        &self,
        key: EffectId,
        request_hash: String,
        call: impl Future<Output = HttpToolAnswer> + Send + 'static,
    ) -> Result<Held, OtherRequest> {
        // Held until the entry is there, so that the call cannot end before it.
        let mut calls = self.calls();
        if let Some(held) = calls.get(&key) {
            return if held.request_hash == request_hash { Ok(held.clone()) } else { Err(OtherRequest) };
        }
        let (sender, answer) = watch::channel(None);
        let leaving = Leaving { calls: self.clone(), key: key.clone() };
        let task = tokio::spawn(async move {
            let answer = call.await;
            // Gone first: who comes now finds the recorded answer.
            drop(leaving);
            let _ = sender.send(Some(answer));
        });
        let held = Held { request_hash, answer, task: task.abort_handle() };
        calls.insert(key, held.clone());
        Ok(held)
    }

    /// Waits for all, at most for `limit`, and ends those that are left.
    pub(super) async fn close(&self, limit: Duration) {
        let mut left: Vec<Held> = self.calls().values().cloned().collect();
        let all = async {
            for held in &mut left {
                held.answer().await;
            }
        };
        if timeout(limit, all).await.is_err() {
            left.iter().for_each(Held::end);
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<EffectId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// What becomes of the call.
    pub(super) async fn answer(&mut self) -> HttpToolAnswer {
        let ended = self.answer.wait_for(Option::is_some).await;
        ended.ok().and_then(|answer| answer.clone()).unwrap_or_else(|| HttpToolAnswer::Lost {
            message: "the call was stopped before its answer came".to_owned(),
        })
    }

    /// Ends the call. Its connection is closed; what the endpoint did of it stays done.
    pub(super) fn end(&self) {
        self.task.abort();
    }
}

/// Takes a call out of the table, however it ends.
struct Leaving {
    calls: HeldCalls,
    key: EffectId,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.key);
    }
}
