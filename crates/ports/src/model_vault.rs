//! Where a provider's key is sealed. Only the keys service holds the vault key (trust 1).

use nylorun_domain::change::TenantWrite;
use nylorun_domain::json::Json;

use crate::BoxFuture;
use crate::models::KeysError;
use crate::secret::Secret;

/// A provider's credential, to be sealed and made the tenant's model.
#[derive(Clone, Debug)]
pub struct ModelPut {
    /// The provider's id.
    pub provider: String,
    /// The model's id at the provider.
    pub model: String,
    /// Where the endpoint is, for `custom`.
    pub base_url: Option<String>,
    /// Settings of the endpoint, a JSON object.
    pub settings: Json,
    /// The API key; may be empty for an endpoint that wants none.
    pub key: Secret,
    /// The write that this is, to be remembered with it.
    pub write: Option<TenantWrite>,
}

/// Seals providers' keys.
pub trait ModelVault: Send + Sync {
    /// Seals the key, stores it, and makes the provider the tenant's model.
    fn put(&self, put: ModelPut) -> BoxFuture<'_, Result<(), KeysError>>;

    /// Whether the key of the tenant's model opens; fine where the model needs none. The key itself stays here.
    fn opens(&self) -> BoxFuture<'_, Result<(), KeysError>>;
}
