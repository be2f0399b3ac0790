//! The keys that a start needs: the vault key of the home directory, and those of callers in the operator's files.

use std::path::Path;

use nylorun_domain::caller::{Role, is_key};
use nylorun_domain::hash::sha256_hex;
use nylorun_keys::kek::Kek;
use nylorun_keys::sealed::{VaultError, open_vault};
use nylorun_store::{PrincipalRow, Store};
use nylorun_turns::{fresh_key, now};

use crate::cli::{CredentialsFile, Failure, NamedKey};
use crate::home::{Exposure, Home};

/// The vault key: made at the first start, and the one that sealed what the store holds at each later one.
pub(super) async fn vault_key(home: &Home, store: &Store) -> Result<Kek, Failure> {
    open_vault(&home.vault_key(), store).await.map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error {
            VaultError::Missing { .. } | VaultError::Other { .. } => failure.remedy(format!(
                "restore this file from the backup, or from the home directory that sealed them; \
                 or give them up with `nylorun secrets discard --home {}` and set the model again",
                home.path().display()
            )),
            // Their messages hold the remedy.
            VaultError::Kek(_) | VaultError::Store(_) => failure,
        }
    })
}

/// The keys that the command line uses: made at the first start, registered again at each one.
pub(super) async fn of_command_line(home: &Home, store: &Store) -> Result<CredentialsFile, Failure> {
    let named = |id: &str| NamedKey { id: id.to_owned(), key: fresh_key() };
    let known = home.credentials()?;
    let file = known.clone().unwrap_or_else(|| CredentialsFile {
        format: 1,
        application_key: Some(named("local")),
        management_key: Some(named("local-management")),
    });
    if known.is_none() {
        home.write_credentials(&file)?;
    }
    let keys = [(&file.application_key, Role::Application), (&file.management_key, Role::Management)];
    for (key, role) in keys {
        if let Some(key) = key {
            register(store, &key.id, role, &key.key).await?;
        }
    }
    Ok(file)
}

/// The operator's management key, from a file that only the operator should be able to read.
pub(super) async fn register_bootstrap(file: Option<&Path>, store: &Store) -> Result<(), Failure> {
    let Some(path) = file else { return Ok(()) };
    let failed = |problem: &str| {
        let path = path.display().to_string();
        Failure::usage(format!("NYLORUN_MANAGEMENT_KEY_FILE={path:?} cannot be used: {problem}"))
            .remedy("name a file that holds 64 lower-case hexadecimal digits and nothing else, or leave it out")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    let key = text.trim();
    if !is_key(key) {
        return Err(failed("it holds no key"));
    }
    // Not refused: secrets that a platform mounts are often readable by all in their container.
    if let Ok(Some(Exposure::Mode(mode))) = Exposure::of(path) {
        let (path, mode) = (path.display(), format_args!("{mode:04o}"));
        tracing::warn!(%path, %mode, "other users may read the file of the management key");
    }
    register(store, "bootstrap", Role::Management, key).await
}

async fn register(store: &Store, id: &str, role: Role, key: &str) -> Result<(), Failure> {
    let failed = |error: String| Failure::new(format!("cannot register the key {id}: {error}"));
    let hash = sha256_hex(key.as_bytes());
    let known = store.principal_get(id).await.map_err(|error| failed(error.to_string()))?;
    if known.is_some_and(|known| known.token_hash == hash && known.role == role.as_str()) {
        return Ok(());
    }
    let row = PrincipalRow { id: id.to_owned(), role: role.as_str().to_owned(), token_hash: hash, created_at: now() };
    store.principal_put(&row).await.map_err(|error| failed(error.to_string()))?;
    tracing::info!(key = id, role = role.as_str(), "key registered");
    Ok(())
}
