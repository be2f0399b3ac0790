//! Which secrets the store holds sealed, and whether this vault key is the one that opens them.
//!
//! A vault key that is made anew beside a store with secrets would take them from their owner in silence, so the key is
//! compared with them before anything is served.

use std::path::{Path, PathBuf};

use nylorun_domain::id::TenantId;
use nylorun_ports::secret::Secret;
use nylorun_store::{ProviderRow, Store, StoreError, WriteError};

use crate::envelope::{Binding, OpenError, Sealed};
use crate::kek::{Kek, KekError, KekProblem};

/// A secret in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// The model provider whose key it is.
    pub provider: String,
    /// The vault key that it was sealed with, by its id.
    pub kek_id: String,
    /// Whether the vault key at hand opens it.
    pub opens: Opens,
}

/// Whether a secret opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opens {
    /// It does.
    Yes,
    /// It does not.
    No(OpenError),
}

/// Why the vault key cannot be used with this store.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// There is no key, or its file cannot be used.
    #[error(transparent)]
    Kek(#[from] KekError),
    /// There is no key, and the store holds secrets that only it opens.
    #[error("{} is missing, and {} sealed with it (id {})", path.display(), told(sealed), ids(sealed))]
    Missing {
        /// Where the key should be.
        path: PathBuf,
        /// What it sealed.
        sealed: Vec<SealedSecret>,
    },
    /// The key is another one than the secrets were sealed with.
    #[error(
        "{} is not the vault key with which {} sealed (its id is {}, wanted is {})",
        path.display(), told(sealed), short(id), ids(sealed)
    )]
    Other {
        /// Where the key is.
        path: PathBuf,
        /// The id of the key that is there.
        id: String,
        /// What it does not open.
        sealed: Vec<SealedSecret>,
    },
    /// The store did not answer.
    #[error("the sealed secrets cannot be read: {0}")]
    Store(#[from] StoreError),
}

/// Why secrets were not removed.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// The store did not answer.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// It did not remove them, or not all.
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn told(sealed: &[SealedSecret]) -> String {
    let providers: Vec<&str> = sealed.iter().map(|secret| secret.provider.as_str()).collect();
    match providers[..] {
        [one] => format!("the stored key of {one} was"),
        _ => format!("the stored keys of {} were", providers.join(", ")),
    }
}

fn ids(sealed: &[SealedSecret]) -> String {
    let mut ids: Vec<&str> = sealed.iter().map(|secret| short(&secret.kek_id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.join(", ")
}

/// Enough of a key's id to tell it from others.
pub fn short(kek_id: &str) -> &str {
    kek_id.get(..12).unwrap_or(kek_id)
}

/// Reads the vault key at `path`, and makes it when there is none and the store holds nothing that another one sealed.
/// Only for a home directory that is held by a lock.
pub async fn open_vault(path: &Path, store: &Store) -> Result<Kek, VaultError> {
    let rows = store.provider_list().await?;
    if rows.is_empty() {
        return Ok(Kek::load_or_create(path)?);
    }
    let path = path.to_owned();
    let kek = match Kek::load(&path) {
        Ok(kek) => kek,
        Err(KekError { problem: KekProblem::Missing, .. }) => {
            let sealed = rows.iter().map(|row| state(None, store.tenant(), row)).collect();
            return Err(VaultError::Missing { path, sealed });
        }
        Err(error) => return Err(error.into()),
    };
    let foreign = rows.iter().filter(|row| row.sealed.kek_id != kek.id());
    let sealed: Vec<SealedSecret> = foreign.map(|row| state(Some(&kek), store.tenant(), row)).collect();
    if sealed.is_empty() { Ok(kek) } else { Err(VaultError::Other { path, id: kek.id().to_owned(), sealed }) }
}

/// All secrets in the store, by provider, and whether `kek` opens them; without one, none does.
pub async fn list(kek: Option<&Kek>, store: &Store) -> Result<Vec<SealedSecret>, StoreError> {
    let rows = store.provider_list().await?;
    Ok(rows.iter().map(|row| state(kek, store.tenant(), row)).collect())
}

/// Removes the secrets that `kek` does not open, for good, and answers which they were.
pub async fn discard(kek: Option<&Kek>, store: &Store) -> Result<Vec<SealedSecret>, DiscardError> {
    let rows = store.provider_list().await?;
    let lost = rows.iter().map(|row| state(kek, store.tenant(), row)).filter(|secret| secret.opens != Opens::Yes);
    let lost: Vec<SealedSecret> = lost.collect();
    for secret in &lost {
        store.provider_delete(&secret.provider).await?;
    }
    Ok(lost)
}

fn state(kek: Option<&Kek>, tenant: &TenantId, row: &ProviderRow) -> SealedSecret {
    let opened = match kek {
        Some(kek) => open(kek, tenant, row),
        None => Err(OpenError::OtherKek(row.sealed.kek_id.clone())),
    };
    SealedSecret {
        provider: row.provider.clone(),
        kek_id: row.sealed.kek_id.clone(),
        opens: match opened {
            Ok(_) => Opens::Yes,
            Err(error) => Opens::No(error),
        },
    }
}

/// Opens a provider's key.
pub(crate) fn open(kek: &Kek, tenant: &TenantId, row: &ProviderRow) -> Result<Secret, OpenError> {
    let sealed = Sealed {
        kek_id: row.sealed.kek_id.clone(),
        wrapped_key: row.sealed.wrapped_dek.clone(),
        nonce: row.sealed.nonce.clone(),
        ciphertext: row.sealed.ciphertext.clone(),
    };
    let opened = kek.open(&sealed, &binding(tenant, &row.provider, row.base_url.as_deref()))?;
    std::str::from_utf8(&opened).map(Secret::new).map_err(|_| OpenError::Broken)
}

/// A key that is moved to another tenant's or provider's row, or pointed at another endpoint, does not open (engine
/// e.8).
pub(crate) fn binding(tenant: &TenantId, provider: &str, base_url: Option<&str>) -> Binding {
    Binding::new("nylorun.model-key", &[tenant.as_str(), provider, "api_key", base_url.unwrap_or("")])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use nylorun_domain::json::Json;
    use nylorun_domain::time::Millis;
    use nylorun_ports::model_vault::{ModelPut, ModelVault as _};
    use nylorun_store::db::DatabaseUrl;
    use nylorun_store::{Db, NewTenant};

    use super::*;
    use crate::kek::KEK_FILE;
    use crate::model::ModelSecrets;

    async fn store(folder: &Path) -> Store {
        let url = DatabaseUrl::Sqlite(folder.join("test.db"));
        let db = Arc::new(Db::open(&url, &Default::default()).await.unwrap());
        let id = TenantId::from_trusted("tn_0123456789abcdefghjkmnpqrs");
        Store::open(db, &NewTenant { id, name: "test".to_owned(), created_at: Millis(0) }).await.unwrap()
    }

    async fn seal(kek: &Arc<Kek>, store: &Store, provider: &str) {
        let put = ModelPut {
            provider: provider.to_owned(),
            model: "m".to_owned(),
            base_url: None,
            settings: Json::from_trusted("{}"),
            key: Secret::new("sk"),
            write: None,
        };
        ModelSecrets::new(Arc::clone(kek), store.clone(), || Millis(0)).put(put).await.unwrap();
    }

    fn providers(sealed: &[SealedSecret]) -> Vec<&str> {
        sealed.iter().map(|secret| secret.provider.as_str()).collect()
    }

    #[tokio::test]
    async fn a_vault_key_is_made_only_where_nothing_is_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        let path = folder.path().join(KEK_FILE);
        let made = Arc::new(open_vault(&path, &store).await.unwrap());
        fs::remove_file(&path).unwrap();
        assert_ne!(open_vault(&path, &store).await.unwrap().id(), made.id());
        seal(&made, &store, "a").await;
        fs::remove_file(&path).unwrap();
        match open_vault(&path, &store).await.unwrap_err() {
            VaultError::Missing { sealed, .. } => assert_eq!(providers(&sealed), ["a"]),
            other => panic!("{other}"),
        }
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_another_key_sealed_is_named_and_can_be_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        let kek = Arc::new(Kek::load_or_create(&ours).unwrap());
        let other = Arc::new(Kek::load_or_create(&theirs).unwrap());
        seal(&kek, &store, "a").await;
        assert_eq!(open_vault(&ours, &store).await.unwrap().id(), kek.id());
        seal(&other, &store, "b").await;
        let error = open_vault(&ours, &store).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("the stored key of b was sealed"), "{said}");
        assert!(said.contains(short(kek.id())) && said.contains(short(other.id())), "{said}");
        assert!(!said.contains("sk"), "{said}");

        assert_eq!(providers(&discard(Some(&kek), &store).await.unwrap()), ["b"]);
        let left = list(Some(&kek), &store).await.unwrap();
        assert_eq!(left, [SealedSecret { provider: "a".to_owned(), kek_id: kek.id().to_owned(), opens: Opens::Yes }]);
        assert_eq!(providers(&discard(None, &store).await.unwrap()), ["a"]);
        assert_eq!(list(None, &store).await.unwrap(), []);
    }
}
