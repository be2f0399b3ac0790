//! Who calls: a key is looked up by its hash at every request, so that a rotated or deleted one stops at once (trust
//! 3), and what was opened with it ends soon after. A trusted issuer's token is checked at every request too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::caller::{Principal, Role, is_key};
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::issuer::{Person, TokenScope};
use nylorun_ports::issuers::TokenRefusal;
use nylorun_store::Store;
use tokio::sync::watch;

use crate::{App, Error};

/// How often a process that has streams open asks whether any key changed: one row, however many streams there are.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl App {
    /// The principal of a bearer key, or `None` for one that nobody has.
    ///
    /// The store is asked for the hash of what was sent: a comparison's time can tell nothing of a stored key.
    pub async fn principal(&self, bearer: &str) -> Result<Option<Principal>, Error> {
        if !is_key(bearer) {
            return Ok(None);
        }
        let key_hash = sha256_hex(bearer.as_bytes());
        let row = self.store().principal_find(&key_hash).await?;
        Ok(row.and_then(|row| Some(Principal { role: Role::from_wire(&row.role)?, key_id: row.id, key_hash })))
    }

    /// The person who holds a trusted issuer's token.
    pub async fn person(&self, token: &str) -> Result<Person, TokenRefusal> {
        self.parts().issuers.person(token).await
    }

    /// The identifiers of the trusted issuers, in the operator's order.
    pub fn trusted_issuers(&self) -> Vec<String> {
        self.parts().issuers.identifiers()
    }

    /// What the trusted issuers' tokens may carry.
    pub fn token_scopes(&self) -> Vec<TokenScope> {
        self.parts().issuers.grantable()
    }
}

/// Tells when a key is gone that something was opened with.
#[derive(Debug)]
pub(crate) struct KeyWatch(watch::Receiver<KeyState>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyState {
    Valid,
    Gone,
}

impl KeyWatch {
    /// Waits until the key is rotated or deleted, by any process. May be dropped while it waits.
    pub(crate) async fn gone(&mut self) {
        // An error means that nobody looks after the key any more, which is no better than its being gone.
        let _ = self.0.wait_for(|state| *state == KeyState::Gone).await;
    }
}

/// The keys with which something is open, by their hash. One task looks after all of them while there are any.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyWatches(Arc<Mutex<HashMap<String, WatchedKey>>>);

#[derive(Debug)]
struct WatchedKey {
    state: watch::Sender<KeyState>,
    /// The key's name.
    id: String,
    /// How many changes of keys there had been when it was looked up last.
    looked_up_at: Option<String>,
}

impl KeyWatches {
    /// Watches the key of this principal until the answer is dropped.
    pub(crate) fn watch(&self, store: &Store, principal: &Principal) -> KeyWatch {
        let mut keys = self.lock();
        if keys.is_empty() {
            tokio::spawn(look_after(self.clone(), store.clone()));
        }
        let key = keys.entry(principal.key_hash.clone()).or_insert_with(|| WatchedKey {
            state: watch::Sender::new(KeyState::Valid),
            id: principal.key_id.clone(),
            looked_up_at: None,
        });
        KeyWatch(key.state.subscribe())
    }

    /// This process rotated or deleted the key of this name: nobody has to wait for the next look.
    pub(crate) fn end(&self, id: &str) {
        for key in self.lock().values().filter(|key| key.id == id) {
            key.state.send_replace(KeyState::Gone);
        }
    }

    /// Forgets what nobody watches any more, and gives the keys that were not looked up since the last change. `None`
    /// when no key is watched: the next one begins a task of its own.
    fn due(&self, changes: &str) -> Option<Vec<String>> {
        let mut keys = self.lock();
        keys.retain(|_, key| key.state.receiver_count() > 0);
        let due = keys.iter().filter(|(_, key)| key.looked_up_at.as_deref() != Some(changes));
        let due = due.map(|(hash, _)| hash.clone()).collect();
        (!keys.is_empty()).then_some(due)
    }

    /// Notes what looking a key up has told.
    fn looked_up(&self, hash: &str, changes: &str, state: KeyState) {
        if let Some(key) = self.lock().get_mut(hash) {
            key.looked_up_at = Some(changes.to_owned());
            if state == KeyState::Gone {
                key.state.send_replace(KeyState::Gone);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WatchedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for changes of keys until nobody watches one.
async fn look_after(watches: KeyWatches, store: Store) {
    let mut known = String::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // While the database does not answer, nothing is written that a stream could show either.
        if let Ok(changes) = store.principal_changes().await {
            known = changes.unwrap_or_default();
        }
        let Some(due) = watches.due(&known) else { return };
        for hash in due {
            match store.principal_find(&hash).await {
                Ok(Some(_)) => watches.looked_up(&hash, &known, KeyState::Valid),
                Ok(None) => watches.looked_up(&hash, &known, KeyState::Gone),
                Err(error) => tracing::debug!(%error, "a watched key could not be looked up"),
            }
        }
    }
}
