//! The tenant's model key: sealed when it is set, opened for each call (trust 1, engine e.8).

use std::sync::Arc;

use nylorun_domain::json::Json;
use nylorun_ports::BoxFuture;
use nylorun_ports::model_vault::{ModelPut, ModelVault};
use nylorun_ports::models::{KeysError, ModelAccess, ModelKeys, ModelTerms, ProviderAccess};
use nylorun_store::{Fault, ModelSettings, ProviderRow, SealedColumns, Store, StoreError, WriteError};

use crate::kek::Kek;
use crate::sealed::{binding, open};

/// Providers' keys in the store, sealed with this host's vault key.
pub struct ModelSecrets {
    kek: Arc<Kek>,
    store: Store,
    now: fn() -> nylorun_domain::time::Millis,
}

impl ModelSecrets {
    /// The keys of the store's tenant. `now` dates what is stored.
    pub fn new(kek: Arc<Kek>, store: Store, now: fn() -> nylorun_domain::time::Millis) -> Self {
        Self { kek, store, now }
    }

    async fn read(&self) -> Result<ModelTerms, KeysError> {
        let ModelSettings { fixture, budget_changes } = self.store.model_settings().await.map_err(unread)?;
        let access = match fixture {
            Some(_) => ModelAccess::Fixture,
            None => self.read_provider().await?,
        };
        Ok(ModelTerms { access, budgets: budget_changes })
    }

    async fn read_provider(&self) -> Result<ModelAccess, KeysError> {
        let Some(row) = self.store.provider_active().await.map_err(unread)? else { return Ok(ModelAccess::None) };
        let key = open(&self.kek, self.store.tenant(), &row).map_err(|_| KeysError::Unreadable)?;
        Ok(ModelAccess::Provider(ProviderAccess {
            provider: row.provider,
            model: row.model,
            base_url: row.base_url,
            settings: Json::from_trusted(row.settings),
            key,
        }))
    }

    async fn write(&self, put: ModelPut) -> Result<(), KeysError> {
        let binding = binding(self.store.tenant(), &put.provider, put.base_url.as_deref());
        let sealed = self.kek.seal(put.key.expose().as_bytes(), &binding).map_err(unavailable)?;
        let row = ProviderRow {
            provider: put.provider,
            model: put.model,
            base_url: put.base_url,
            settings: put.settings.as_str().to_owned(),
            auth_type: "api_key".to_owned(),
            sealed: SealedColumns {
                kek_id: sealed.kek_id,
                nonce: sealed.nonce,
                wrapped_dek: sealed.wrapped_key,
                ciphertext: sealed.ciphertext,
            },
            is_active: true,
            updated_at: (self.now)(),
        };
        self.store.provider_put(&row, put.write.as_ref()).await.map_err(unkept)
    }
}

fn unread(error: StoreError) -> KeysError {
    of_fault(Some(error.fault()), &error)
}

fn unkept(error: WriteError) -> KeysError {
    of_fault(error.fault(), &error)
}

/// A key that is there meanwhile is no fault: who asked looks whether that was the same write.
fn of_fault(fault: Option<Fault>, error: &dyn std::fmt::Display) -> KeysError {
    match fault {
        None | Some(Fault::Passing | Fault::NoWrites) => unavailable(error),
        Some(Fault::ForGood) => KeysError::Broken(error.to_string()),
    }
}

fn unavailable(error: impl std::fmt::Display) -> KeysError {
    KeysError::Unavailable(error.to_string())
}

impl ModelKeys for ModelSecrets {
    fn terms(&self) -> BoxFuture<'_, Result<ModelTerms, KeysError>> {
        Box::pin(self.read())
    }
}

impl ModelVault for ModelSecrets {
    fn put(&self, put: ModelPut) -> BoxFuture<'_, Result<(), KeysError>> {
        Box::pin(self.write(put))
    }

    fn opens(&self) -> BoxFuture<'_, Result<(), KeysError>> {
        Box::pin(async { self.read().await.map(drop) })
    }
}
