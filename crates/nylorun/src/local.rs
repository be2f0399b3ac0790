//! Work on the home directory itself, beside a running server (decisions, Storage).

use std::path::Path;
use std::sync::Arc;

use nylorun_domain::caller::Role;
use nylorun_domain::grammar::is_puttable_key_id;
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::TenantId;
use nylorun_store::{NewTenant, PrincipalRow, Store};
use nylorun_turns::{fresh_key, now, ulid};
use serde::Serialize;

use crate::cli::{Failure, KeyRole};
use crate::config::database_url;
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

/// The store of a home directory, also while a server runs on it: SQLite lets one writer at a time in, and keys are
/// never cached.
async fn open(home: &Path) -> Result<Store, Failure> {
    let home = Home::existing(home)?;
    let url = std::env::var("NYLORUN_DATABASE_URL").ok().filter(|url| !url.is_empty());
    let database = url.map(|url| database_url(&url)).transpose()?.unwrap_or_else(|| home.database());
    let db = Arc::new(open_database(&database).await?);
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
