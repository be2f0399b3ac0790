//! What belongs to the tenant as a whole: its settings, callers' keys, providers' sealed keys.

use std::sync::Arc;

use nylorun_domain::change::TenantWrite;
use nylorun_domain::id::TenantId;
use nylorun_domain::time::Millis;

use crate::db::{Db, DbError, Guard, Row, Statement};
use crate::{Store, StoreError, WriteError, params, tenant_write};

const GET_SETTING: &str = "SELECT value FROM settings WHERE key = $1";
const PUT_SETTING: &str =
    "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const SEED_SETTING: &str = "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
const DELETE_SETTING: &str = "DELETE FROM settings WHERE key = $1";
const PUT_PRINCIPAL: &str = "INSERT INTO principals (id, role, token_hash, created_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (id) DO UPDATE SET token_hash = excluded.token_hash, \
     created_at = excluded.created_at, role = excluded.role";
const FIND_PRINCIPAL: &str = "SELECT id, role, token_hash, created_at FROM principals WHERE token_hash = $1";
const GET_PRINCIPAL: &str = "SELECT id, role, token_hash, created_at FROM principals WHERE id = $1";
const LIST_PRINCIPALS: &str = "SELECT id, role, token_hash, created_at FROM principals ORDER BY id";
const DELETE_PRINCIPAL: &str = "DELETE FROM principals WHERE id = $1";
// Counted in the transaction of the change, so that whoever asks for the count learns of changes by other processes.
const COUNT_PRINCIPAL_CHANGE: &str = "INSERT INTO settings (key, value) VALUES ($1, '1') ON CONFLICT (key) DO UPDATE \
     SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)";
const DEACTIVATE_PROVIDERS: &str = "UPDATE model_providers SET is_active = 0 WHERE is_active = 1";
const ACTIVATE_PROVIDER: &str = "UPDATE model_providers SET is_active = 1, model = $1, base_url = $2, updated_at = $3 \
     WHERE provider = $4";
const PUT_PROVIDER: &str = "INSERT INTO model_providers (provider, model, base_url, settings, auth_type, kek_id, \
     nonce, wrapped_dek, ciphertext, is_active, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10) \
     ON CONFLICT (provider) DO UPDATE SET model = excluded.model, base_url = excluded.base_url, settings = \
     excluded.settings, auth_type = excluded.auth_type, kek_id = excluded.kek_id, nonce = excluded.nonce, wrapped_dek \
     = excluded.wrapped_dek, ciphertext = excluded.ciphertext, is_active = 1, updated_at = excluded.updated_at";
const DELETE_PROVIDER: &str = "DELETE FROM model_providers WHERE provider = $1";
const LIST_PROVIDERS: &str = "SELECT provider, model, base_url, settings, auth_type, kek_id, nonce, wrapped_dek, \
     ciphertext, is_active, updated_at FROM model_providers ORDER BY provider";
const ACTIVE_PROVIDER: &str = "SELECT provider, model, base_url, settings, auth_type, kek_id, nonce, wrapped_dek, \
     ciphertext, is_active, updated_at FROM model_providers WHERE is_active = 1";

pub(crate) const SQL: &[&str] = &[
    GET_SETTING,
    PUT_SETTING,
    SEED_SETTING,
    DELETE_SETTING,
    PUT_PRINCIPAL,
    FIND_PRINCIPAL,
    GET_PRINCIPAL,
    LIST_PRINCIPALS,
    DELETE_PRINCIPAL,
    COUNT_PRINCIPAL_CHANGE,
    DEACTIVATE_PROVIDERS,
    ACTIVATE_PROVIDER,
    PUT_PROVIDER,
    DELETE_PROVIDER,
    LIST_PROVIDERS,
    ACTIVE_PROVIDER,
];

/// The setting that holds the tenant's id.
const TENANT_ID: &str = "tenant.id";
/// The setting that holds the tenant's name.
pub const TENANT_NAME: &str = "tenant.name";
/// The setting that holds the time at which the tenant was made, in milliseconds since 1970.
pub const TENANT_CREATED_AT: &str = "tenant.createdAt";
/// The setting that is written to see whether the database takes writes again.
const WRITE_PROBE: &str = "write.probe";
/// The setting that counts changes of callers' keys.
const PRINCIPAL_CHANGES: &str = "principal.changes";

/// The provider to select has no row: no key is stored for it.
pub const NO_PROVIDER: Guard = Guard("provider has a credential");

/// A caller's key: what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalRow {
    /// Its name.
    pub id: String,
    /// `application`, `management` or `studio`.
    pub role: String,
    /// SHA-256 of the key, lower-case hexadecimal.
    pub token_hash: String,
    /// When it was made.
    pub created_at: Millis,
}

/// A provider's stored credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRow {
    /// The provider's id.
    pub provider: String,
    /// The model chosen last.
    pub model: String,
    /// Its endpoint, for `custom`.
    pub base_url: Option<String>,
    /// Settings of the endpoint, a JSON object.
    pub settings: String,
    /// `api_key`
    pub auth_type: String,
    /// The sealed credential.
    pub sealed: SealedColumns,
    /// Whether the tenant's model calls go here.
    pub is_active: bool,
    /// When it last changed.
    pub updated_at: Millis,
}

/// A sealed secret, as columns (engine e.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedColumns {
    /// Which vault key sealed it.
    pub kek_id: String,
    /// 12 bytes.
    pub nonce: Vec<u8>,
    /// 60 bytes.
    pub wrapped_dek: Vec<u8>,
    /// The secret, sealed.
    pub ciphertext: Vec<u8>,
}

/// The tenant of a database that has none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTenant {
    /// Its id.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// When it is made.
    pub created_at: Millis,
}

impl Store {
    /// Opens the tenant of this database, which is made as `fresh` says when there is none.
    pub async fn open(db: Arc<Db>, fresh: &NewTenant) -> Result<Self, WriteError> {
        let seed = |key: &'static str, value: String| Statement::any(SEED_SETTING, params![key, value]);
        let known = db.query(GET_SETTING, params![TENANT_ID]).await?;
        if known.is_empty() {
            let statements = vec![
                seed(TENANT_ID, fresh.id.to_string()),
                seed(TENANT_NAME, fresh.name.clone()),
                seed(TENANT_CREATED_AT, fresh.created_at.0.to_string()),
            ];
            db.write(statements).await?;
        }
        let rows = db.query(GET_SETTING, params![TENANT_ID]).await?;
        let id = rows.first().map(|row| row.text_arc(0)).transpose()?;
        Ok(Self { tenant: id.map_or_else(|| fresh.id.clone(), TenantId::from_trusted), db })
    }

    /// A setting of the tenant.
    pub async fn setting_get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let rows = self.db.query(GET_SETTING, params![key]).await?;
        Ok(rows.first().map(|row| row.text(0).map(str::to_owned)).transpose()?)
    }

    /// Sets a setting.
    pub async fn setting_put(&self, key: &str, value: &str) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(PUT_SETTING, params![key, value])]).await
    }

    /// Whether the database takes writes. Costs nothing while it took the last one; after one that it could not take
    /// (its disk was full, say), a small one is tried.
    ///
    /// # Errors
    /// Why it takes none.
    pub async fn check_writes(&self) -> Result<(), WriteError> {
        if self.db.takes_writes() { Ok(()) } else { self.setting_put(WRITE_PROBE, "1").await }
    }

    /// Sets a setting that is not set.
    pub async fn setting_seed(&self, key: &str, value: &str) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(SEED_SETTING, params![key, value])]).await
    }

    /// Stores a caller's key, or replaces the one of its name.
    pub async fn principal_put(&self, row: &PrincipalRow) -> Result<(), WriteError> {
        let params = params![row.id.as_str(), row.role.as_str(), row.token_hash.as_str(), row.created_at.0];
        self.db.write(vec![Statement::any(PUT_PRINCIPAL, params), count_principal_change()]).await
    }

    /// The key with this hash. Keys are never cached: one that is rotated or deleted stops at its next request.
    pub async fn principal_find(&self, token_hash: &str) -> Result<Option<PrincipalRow>, StoreError> {
        let rows = self.db.query(FIND_PRINCIPAL, params![token_hash]).await?;
        Ok(rows.first().map(read_principal).transpose()?)
    }

    /// The key of this name.
    pub async fn principal_get(&self, id: &str) -> Result<Option<PrincipalRow>, StoreError> {
        let rows = self.db.query(GET_PRINCIPAL, params![id]).await?;
        Ok(rows.first().map(read_principal).transpose()?)
    }

    /// All keys, by name.
    pub async fn principal_list(&self) -> Result<Vec<PrincipalRow>, StoreError> {
        let rows = self.db.query(LIST_PRINCIPALS, Vec::new()).await?;
        Ok(rows.iter().map(read_principal).collect::<Result<_, _>>()?)
    }

    /// Deletes the key of this name.
    pub async fn principal_delete(&self, id: &str) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(DELETE_PRINCIPAL, params![id]), count_principal_change()]).await
    }

    /// How often callers' keys were put or deleted, by any process. As long as it stays the same, so do the keys.
    pub async fn principal_changes(&self) -> Result<Option<String>, StoreError> {
        self.setting_get(PRINCIPAL_CHANGES).await
    }

    /// Stores a provider's credential and makes it the tenant's model; the fixture model is switched off by it. `write`
    /// is remembered with it: one of the same key makes the whole fail as a duplicate.
    pub async fn provider_put(&self, row: &ProviderRow, write: Option<&TenantWrite>) -> Result<(), WriteError> {
        let put = params![
            row.provider.as_str(),
            row.model.as_str(),
            row.base_url.as_deref(),
            row.settings.as_str(),
            row.auth_type.as_str(),
            row.sealed.kek_id.as_str(),
            row.sealed.nonce.clone(),
            row.sealed.wrapped_dek.clone(),
            row.sealed.ciphertext.clone(),
            row.updated_at.0,
        ];
        let mut statements = vec![
            Statement::any(DEACTIVATE_PROVIDERS, Vec::new()),
            Statement::any(PUT_PROVIDER, put),
            Statement::any(DELETE_SETTING, params![crate::FIXTURE_MODEL]),
        ];
        statements.extend(write.map(tenant_write::insert));
        self.db.write(statements).await
    }

    /// Makes another stored provider the tenant's model, and remembers `write`. Fails with [`NO_PROVIDER`] when none of
    /// that id is stored, and as a duplicate when a write of the same key was.
    pub async fn provider_select(
        &self,
        provider: &str,
        model: &str,
        base_url: Option<&str>,
        write: &TenantWrite,
    ) -> Result<(), WriteError> {
        let statements = vec![
            tenant_write::insert(write),
            Statement::any(DEACTIVATE_PROVIDERS, Vec::new()),
            Statement::one(ACTIVATE_PROVIDER, params![model, base_url, write.at.0, provider], NO_PROVIDER),
            Statement::any(DELETE_SETTING, params![crate::FIXTURE_MODEL]),
        ];
        self.db.write(statements).await
    }

    /// Makes the fixture the tenant's model, and remembers `write`. Stored providers stay. Fails as a duplicate when a
    /// write of the same key was remembered.
    pub async fn fixture_select(&self, write: &TenantWrite) -> Result<(), WriteError> {
        let put = Statement::any(PUT_SETTING, params![crate::FIXTURE_MODEL, "true"]);
        self.db.write(vec![tenant_write::insert(write), put]).await
    }

    /// Removes a provider with its credential.
    pub async fn provider_delete(&self, provider: &str) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(DELETE_PROVIDER, params![provider])]).await
    }

    /// All stored providers, by id.
    pub async fn provider_list(&self) -> Result<Vec<ProviderRow>, StoreError> {
        let rows = self.db.query(LIST_PROVIDERS, Vec::new()).await?;
        Ok(rows.iter().map(read_provider).collect::<Result<_, _>>()?)
    }

    /// The provider that the tenant's model calls go to.
    pub async fn provider_active(&self) -> Result<Option<ProviderRow>, StoreError> {
        let rows = self.db.query(ACTIVE_PROVIDER, Vec::new()).await?;
        Ok(rows.first().map(read_provider).transpose()?)
    }
}

fn count_principal_change() -> Statement {
    Statement::any(COUNT_PRINCIPAL_CHANGE, params![PRINCIPAL_CHANGES])
}

fn read_principal(row: &Row) -> Result<PrincipalRow, DbError> {
    Ok(PrincipalRow {
        id: row.text(0)?.to_owned(),
        role: row.text(1)?.to_owned(),
        token_hash: row.text(2)?.to_owned(),
        created_at: Millis(row.int(3)?),
    })
}

fn read_provider(row: &Row) -> Result<ProviderRow, DbError> {
    Ok(ProviderRow {
        provider: row.text(0)?.to_owned(),
        model: row.text(1)?.to_owned(),
        base_url: row.opt_text(2)?.map(str::to_owned),
        settings: row.text(3)?.to_owned(),
        auth_type: row.text(4)?.to_owned(),
        sealed: SealedColumns {
            kek_id: row.text(5)?.to_owned(),
            nonce: row.blob(6)?.to_vec(),
            wrapped_dek: row.blob(7)?.to_vec(),
            ciphertext: row.blob(8)?.to_vec(),
        },
        is_active: row.int(9)? == 1,
        updated_at: Millis(row.int(10)?),
    })
}
