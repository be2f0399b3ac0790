//! Callers' keys (api 3).

use nylorun_domain::caller::Role;
use nylorun_domain::grammar::{is_key_id, is_own_key_id, is_puttable_key_id};
use nylorun_domain::hash::sha256_hex;
use nylorun_store::PrincipalRow;
use nylorun_turns::{fresh_key, now};
use nylorun_wire::code::Code;
use nylorun_wire::key::{KeyListed, KeyMade};

use crate::{App, Error};

impl App {
    /// All keys, by name.
    pub async fn key_list(&self) -> Result<Vec<KeyListed>, Error> {
        let keys = self.store().principal_list().await?;
        let listed = keys.into_iter().map(|row| KeyListed { id: row.id, role: row.role, created_at: row.created_at });
        Ok(listed.collect())
    }

    /// Makes an application key, or rotates the one of this name: the old one stops at its next request, and streams
    /// that it opened end.
    pub async fn key_put(&self, id: &str) -> Result<KeyMade, Error> {
        check_id(id)?;
        refuse_own(id)?;
        if !is_puttable_key_id(id) {
            return Err(Error::bad_request(format!("the name {id} is reserved; choose another")));
        }
        let old = self.store().principal_get(id).await?;
        if old.as_ref().is_some_and(|old| old.role != Role::Application.as_str()) {
            return Err(Error::bad_request(format!(
                "{id} is a management key; only `nylorun key put {id} --management` on its host replaces it"
            )));
        }
        let key = fresh_key();
        let row = PrincipalRow {
            id: id.to_owned(),
            role: Role::Application.as_str().to_owned(),
            token_hash: sha256_hex(key.as_bytes()),
            created_at: now(),
        };
        self.store().principal_put(&row).await?;
        self.key_watches().end(id);
        tracing::info!(key = row.id, role = row.role, rotated = old.is_some(), "key made");
        Ok(KeyMade { id: row.id, created_at: row.created_at, key, rotated: old.is_some() })
    }

    /// Deletes an application key: it stops at its next request, and streams that it opened end.
    pub async fn key_delete(&self, id: &str) -> Result<(), Error> {
        check_id(id)?;
        refuse_own(id)?;
        if id == Role::Studio.as_str() {
            return Err(Error::bad_request("studio is the host's own key; it cannot be deleted"));
        }
        let row = self.store().principal_get(id).await?;
        let row = row.ok_or_else(|| Error::not_found(format!("No key {id}")))?;
        if row.role != Role::Application.as_str() {
            return Err(Error::bad_request(format!(
                "{id} is a {} key; only `nylorun key rm {id}` on its host deletes it",
                row.role
            )));
        }
        self.store().principal_delete(id).await?;
        self.key_watches().end(id);
        tracing::info!(key = id, role = row.role, "key removed");
        Ok(())
    }
}

/// A start registers these again from its file: what was removed would come back to life.
fn refuse_own(id: &str) -> Result<(), Error> {
    if !is_own_key_id(id) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "{id} is the key of the host's own command line; to replace it, remove host-credentials.json there and restart"
    )))
}

fn check_id(id: &str) -> Result<(), Error> {
    if is_key_id(id) {
        return Ok(());
    }
    Err(Error::BadRequest {
        code: Code::InvalidRequest,
        message: format!("{id:?} is no key name: a lower-case letter, then at most 31 of a-z, 0-9 and -"),
    })
}
