//! Work on the home directory itself, beside a running server (decisions, Storage).

use std::path::Path;
use std::sync::Arc;

use nylorun_domain::caller::Role;
use nylorun_domain::grammar::is_puttable_key_id;
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::TenantId;
use nylorun_keys::kek::{Kek, KekError, KekProblem};
use nylorun_keys::sealed::{self, Opens, SealedSecret};
use nylorun_store::db::OlderSchema;
use nylorun_store::{NewTenant, PrincipalRow, Store};
use nylorun_turns::{fresh_key, now, ulid};
use serde::Serialize;

use crate::cli::{Failure, KeyRole};
use crate::config::database_of_process;
use crate::home::Home;
use crate::runtime::open_database;

/// A key that was made just now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewKey {
    /// Its name.
    pub(crate) id: String,
    /// `application` or `management`.
    pub(crate) role: &'static str,
    /// 64 lowercase hex characters, shown this once: the store keeps a hash.
    pub(crate) key: String,
    /// Whether an older key of that name died.
    pub(crate) rotated: bool,
}

/// A key that is there.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedKey {
    /// Its name.
    pub(crate) id: String,
    /// `application` or `management`.
    pub(crate) role: String,
    /// When it was made, ISO 8601 UTC.
    pub(crate) created_at: String,
}

/// Makes a key of that name in the home's database, or replaces it.
///
/// # Errors
/// The name breaks the grammar or is reserved, or the database cannot be opened.
pub(crate) async fn key_put(home: &Path, id: &str, role: KeyRole) -> Result<NewKey, Failure> {
    if !is_puttable_key_id(id) {
        return Err(Failure::usage(format!("{id:?} cannot name a key"))
            .remedy("use a lower-case letter, then at most 31 of a-z, 0-9 and -; studio and bootstrap are reserved"));
    }
    let store = open(home).await?;
    let old = store.principal_get(id).await.map_err(failed)?;
    let role = match role {
        KeyRole::Application => Role::Application,
        KeyRole::Management => Role::Management,
    };
    if let Some(old) = old.as_ref().filter(|old| old.role != role.as_str()) {
        return Err(Failure::new(format!("{id} is a key of the role {}", old.role))
            .remedy(format!("choose another name, or remove it first with `nylorun key rm {id}`")));
    }
    let key = fresh_key();
    let row = PrincipalRow {
        id: id.to_owned(),
        role: role.as_str().to_owned(),
        token_hash: sha256_hex(key.as_bytes()),
        created_at: now(),
    };
    store.principal_put(&row).await.map_err(failed)?;
    store.db().close().await;
    Ok(NewKey { id: row.id, role: role.as_str(), key, rotated: old.is_some() })
}

/// All keys in the home's database, by name.
///
/// # Errors
/// The database cannot be opened.
pub(crate) async fn key_list(home: &Path) -> Result<Vec<ListedKey>, Failure> {
    let store = open(home).await?;
    let keys = store.principal_list().await.map_err(failed)?;
    store.db().close().await;
    let listed =
        keys.into_iter().map(|row| ListedKey { id: row.id, role: row.role, created_at: row.created_at.to_iso() });
    Ok(listed.collect())
}

/// Removes the key of that name.
///
/// # Errors
/// There is none, or the database cannot be opened.
pub(crate) async fn key_rm(home: &Path, id: &str) -> Result<(), Failure> {
    let store = open(home).await?;
    if store.principal_get(id).await.map_err(failed)?.is_none() {
        return Err(
            Failure::new(format!("there is no key {id}")).remedy("`nylorun key list` shows those that there are")
        );
    }
    store.principal_delete(id).await.map_err(failed)?;
    store.db().close().await;
    Ok(())
}

/// A sealed secret, by what it belongs to. Never the secret itself.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSecret {
    /// The model provider whose key it is.
    pub(crate) provider: String,
    /// The vault key that sealed it: SHA-256, lower-case hexadecimal.
    pub(crate) kek_id: String,
    /// Whether the home's vault key opens it.
    pub(crate) opens: bool,
}

impl From<SealedSecret> for ListedSecret {
    fn from(secret: SealedSecret) -> Self {
        let opens = secret.opens == Opens::Yes;
        Self { provider: secret.provider, kek_id: secret.kek_id, opens }
    }
}

/// The sealed secrets in the home's database. A database of an older version is left as it is and not looked into.
///
/// # Errors
/// The database cannot be opened.
pub(crate) async fn secret_list(path: &Path) -> Result<Vec<ListedSecret>, Failure> {
    let home = Home::existing(path)?;
    let store = open_with(&home, OlderSchema::Refuse).await?;
    let listed = sealed::list(vault_key(&home)?.as_ref(), &store).await.map_err(failed)?;
    store.db().close().await;
    Ok(listed.into_iter().map(ListedSecret::from).collect())
}

/// Removes the sealed secrets that the home's vault key does not open, and answers which they were.
///
/// # Errors
/// A server runs on the home, or the database cannot be opened.
pub(crate) async fn secret_discard(path: &Path) -> Result<Vec<ListedSecret>, Failure> {
    let home = Home::existing(path)?;
    let _lock = home.lock()?;
    let store = open_with(&home, OlderSchema::Migrate).await?;
    let lost = sealed::discard(vault_key(&home)?.as_ref(), &store).await.map_err(failed)?;
    store.db().close().await;
    Ok(lost.into_iter().map(ListedSecret::from).collect())
}

/// The home's vault key; `None` when there is none.
fn vault_key(home: &Home) -> Result<Option<Kek>, Failure> {
    match Kek::load(&home.vault_key()) {
        Ok(kek) => Ok(Some(kek)),
        Err(KekError { problem: KekProblem::Missing, .. }) => Ok(None),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// The store of a home directory, also while a server runs on it: SQLite lets one writer at a time in, and keys are
/// never cached.
async fn open(home: &Path) -> Result<Store, Failure> {
    open_with(&Home::existing(home)?, OlderSchema::Migrate).await
}

async fn open_with(home: &Home, older: OlderSchema) -> Result<Store, Failure> {
    let database = database_of_process()?.unwrap_or_else(|| home.database());
    let db = Arc::new(open_database(&database, older).await?);
    let fresh = NewTenant {
        id: TenantId::from_trusted(format!("tn_{}", ulid())),
        name: "default".to_owned(),
        created_at: now(),
    };
    Store::open(db, &fresh).await.map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("the home directory's database: {error}"))
}
