//! An issuer's keys: given in the identity file, or fetched from its key set and kept (api 1.6).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::json::{Value, parse};
use nylorun_ports::key_sets::KeySets;
use tokio::time::Instant;

use crate::jwt::Unverified;
use crate::key::PublicKey;

/// Most keys of a set (api 1.6).
pub(crate) const MAX_KEYS: usize = 64;
/// How long a set that is there is not fetched again, whatever unknown keys tokens name.
const REFETCH_AFTER: Duration = Duration::from_secs(60);
/// The age from which a set is fetched again beside the requests that use it.
const REFRESH_AFTER: Duration = Duration::from_secs(600);
/// How long a failed fetch is not repeated while there is no set at all.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Public keys, each with its `kid` where it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeySet(Vec<(Option<String>, PublicKey)>);

/// What a set says of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signed {
    /// One of its keys has signed it.
    Yes,
    /// It has the key that the token names, which has not signed it.
    No,
    /// It does not have the key, or the token names none and none has signed it.
    ByUnknown,
}

impl KeySet {
    /// Keys without names.
    pub(crate) fn of(keys: Vec<PublicKey>) -> Self {
        Self(keys.into_iter().map(|key| (None, key)).collect())
    }

    /// Reads a JSON Web Key Set. Keys of other kinds or for other uses are left out.
    fn read(document: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(document).map_err(|_| "the key set is not UTF-8")?;
        let document = parse(text).map_err(|error| format!("the key set is not JSON: {error}"))?;
        let keys = document.get("keys").and_then(Value::as_array).ok_or("the key set has no list of keys")?;
        if keys.len() > MAX_KEYS {
            return Err(format!("the key set has {} keys, more than {MAX_KEYS}", keys.len()));
        }
        let read = keys.iter().filter_map(|jwk| {
            let kid = jwk.get("kid").and_then(Value::as_str).map(str::to_owned);
            Some((kid, PublicKey::from_jwk(jwk)?))
        });
        Ok(Self(read.collect()))
    }

    /// Whether one of the keys has signed the token. A key without a name may be the one that a token names.
    pub(crate) fn signed(&self, token: &Unverified<'_>) -> Signed {
        let mut named = false;
        for (kid, key) in self.0.iter().filter(|(_, key)| key.algorithm() == token.algorithm) {
            let is_named = kid.is_some() && *kid == token.kid;
            if !(is_named || kid.is_none() || token.kid.is_none()) {
                continue;
            }
            if key.has_signed(token.message.as_bytes(), &token.signature) {
                return Signed::Yes;
            }
            named |= is_named;
        }
        if named { Signed::No } else { Signed::ByUnknown }
    }
}

/// A key set that is fetched when it is needed.
#[derive(Clone)]
pub(crate) struct RemoteKeys(Arc<Inner>);

struct Inner {
    /// The issuer's name, for the log.
    name: String,
    url: String,
    source: Arc<dyn KeySets>,
    state: Mutex<State>,
    /// Held while the set is fetched: who waits for it takes what was fetched meanwhile.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    set: Option<(Arc<KeySet>, Instant)>,
    /// When it was asked for last, and whether that gave nothing.
    asked: Option<(Instant, Fetch)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetch {
    Done,
    Failed,
}

/// The set cannot be had now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable;

impl RemoteKeys {
    pub(crate) fn new(name: &str, url: &str, source: Arc<dyn KeySets>) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            url: url.to_owned(),
            source,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }))
    }

    /// What the issuer's keys say of a token. An unknown key may be a new one: the set is fetched again for it, though
    /// not often, since anybody can name an unknown key.
    pub(crate) async fn signed(&self, token: &Unverified<'_>) -> Result<Signed, Unavailable> {
        match self.kept().await?.signed(token) {
            known @ (Signed::Yes | Signed::No) => Ok(known),
            Signed::ByUnknown => Ok(self.fetched_within(REFETCH_AFTER).await?.signed(token)),
        }
    }

    /// The set that is there, however old: one that cannot be fetched again keeps working.
    async fn kept(&self) -> Result<Arc<KeySet>, Unavailable> {
        let kept = self.state().set.clone();
        let Some((set, fetched_at)) = kept else { return self.fetched_within(RETRY_AFTER).await };
        if fetched_at.elapsed() >= REFRESH_AFTER && self.0.fetching.try_lock().is_ok() {
            let keys = self.clone();
            // A failure is logged, and does not take away what is there.
            tokio::spawn(async move { keys.fetched_within(REFETCH_AFTER).await });
        }
        Ok(set)
    }

    /// What the issuer answered within the last `period`; it is asked when it was not.
    async fn fetched_within(&self, period: Duration) -> Result<Arc<KeySet>, Unavailable> {
        let _one = self.0.fetching.lock().await;
        let asked = self.state().asked;
        if let Some((at, how)) = asked
            && at.elapsed() < period
        {
            return self.outcome(how);
        }
        let fetched = self.0.source.fetch(&self.0.url).await.and_then(|document| KeySet::read(&document));
        let how = match fetched {
            Ok(set) => {
                tracing::info!(issuer = self.0.name, keys = set.0.len(), "fetched an issuer's keys");
                self.state().set = Some((Arc::new(set), Instant::now()));
                Fetch::Done
            }
            Err(problem) => {
                tracing::warn!(issuer = self.0.name, url = self.0.url, problem, "an issuer's keys cannot be fetched");
                Fetch::Failed
            }
        };
        self.state().asked = Some((Instant::now(), how));
        self.outcome(how)
    }

    fn outcome(&self, how: Fetch) -> Result<Arc<KeySet>, Unavailable> {
        match (how, &self.state().set) {
            (Fetch::Done, Some((set, _))) => Ok(Arc::clone(set)),
            (Fetch::Failed, _) | (Fetch::Done, None) => Err(Unavailable),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
