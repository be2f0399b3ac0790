//! The tenant's model on the wire (api 3.2).

use std::fmt;

use nylorun_domain::check::Problems;
use nylorun_domain::json::{Json, Value};

use crate::body::{Body, missing, text_of};
use crate::raw;

/// Text that must not be printed: `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Box<str>);

impl SecretText {
    /// Takes a secret.
    pub fn new(secret: impl Into<Box<str>>) -> Self {
        Self(secret.into())
    }

    /// The secret, for the one that seals it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// `PUT /v1/tenant/model`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutModel {
    /// The caller's name for this request.
    pub request_id: String,
    /// Its key.
    pub idempotency_key: String,
    /// SHA-256 of the canonical body without `requestId`.
    pub body_hash: String,
    /// What is set.
    pub model: ModelChoice,
}

/// A provider, its model and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The provider's id.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// Where a `custom` endpoint is.
    pub base_url: Option<String>,
    /// Settings of the model or its endpoint.
    pub settings: Option<ModelSettings>,
    /// How the provider is paid.
    pub auth: ModelAuth,
}

/// Settings of a model or its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSettings {
    /// The object, as written.
    pub document: Json,
    /// Tokens of input and output together, at least 1,024.
    pub context_window: Option<i64>,
    /// Tokens of output, at least 1.
    pub max_tokens: Option<i64>,
    /// Whether the model is to reason; the provider decides when this says nothing.
    pub reasoning: Option<bool>,
    /// How a Chat Completions endpoint differs from the usual: an object.
    pub compat: Option<Json>,
}

/// The credential of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelAuth {
    /// `{type:"api_key", key, env?}`
    ApiKey {
        /// The key.
        key: SecretText,
        /// Further settings by name, as some clouds need them.
        env: Vec<(String, SecretText)>,
    },
    /// `{type:"oauth", …}`
    OAuth {
        /// The whole object, extra members included.
        document: SecretText,
        /// The token for the next call.
        access: SecretText,
        /// The token that gets a new one.
        refresh: SecretText,
        /// When `access` expires, in milliseconds since 1970.
        expires: i64,
    },
}

impl ModelAuth {
    /// The wire's word for the type.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "api_key",
            Self::OAuth { .. } => "oauth",
        }
    }

    fn read(auth: &Json) -> Result<Self, Problems> {
        let members = auth.value();
        let secret = |name| text_of(&members, name).map(SecretText::new);
        if members.get("type").and_then(Value::as_str) == Some("oauth") {
            return Ok(Self::OAuth {
                document: SecretText::new(auth.as_str()),
                access: secret("access")?,
                refresh: secret("refresh")?,
                expires: members.get("expires").and_then(Value::as_i64).ok_or_else(|| missing("expires"))?,
            });
        }
        let env = members.get("env").and_then(Value::as_object).unwrap_or_default().iter();
        let env = env.filter_map(|(name, value)| Some((name.as_str()?.to_owned(), SecretText::new(value.as_str()?))));
        Ok(Self::ApiKey { key: secret("key")?, env: env.collect() })
    }
}

impl ModelSettings {
    fn read(settings: &Json) -> Self {
        let members = settings.value();
        let whole = |name| members.get(name).and_then(Value::as_i64);
        Self {
            document: settings.clone(),
            context_window: whole("contextWindow"),
            max_tokens: whole("maxTokens"),
            reasoning: members.get("reasoning").and_then(Value::as_bool),
            compat: raw::member(settings, "compat"),
        }
    }
}

impl ModelChoice {
    /// Reads the members that follow the schema from `document`.
    pub fn read(document: &Json) -> Result<Self, Problems> {
        let members = document.value();
        Ok(Self {
            provider: text_of(&members, "provider")?,
            model: text_of(&members, "model")?,
            base_url: members.get("baseUrl").and_then(Value::as_str).map(str::to_owned),
            settings: raw::member(document, "settings").as_ref().map(ModelSettings::read),
            auth: ModelAuth::read(&raw::member(document, "auth").ok_or_else(|| missing("auth"))?)?,
        })
    }
}

impl PutModel {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        Ok(Self {
            request_id: body.text("requestId")?,
            idempotency_key: body.text("idempotencyKey")?,
            body_hash: body.identity(&["requestId"]),
            model: ModelChoice::read(body.raw())?,
        })
    }
}

/// `PUT /v1/tenant/model/selection`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectModel {
    /// The caller's name for this request.
    pub request_id: String,
    /// Its key.
    pub idempotency_key: String,
    /// SHA-256 of the canonical body without `requestId`.
    pub body_hash: String,
    /// The provider's id.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// Where a `custom` endpoint is.
    pub base_url: Option<String>,
}

impl SelectModel {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        Ok(Self {
            request_id: body.text("requestId")?,
            idempotency_key: body.text("idempotencyKey")?,
            body_hash: body.identity(&["requestId"]),
            provider: body.text("provider")?,
            model: body.text("model")?,
            base_url: body.optional_text("baseUrl"),
        })
    }
}

/// The model view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelView {
    /// No model was chosen.
    Unconfigured,
    /// A model was chosen.
    Configured {
        /// The provider's id.
        provider: String,
        /// The model's id.
        model: String,
        /// `api_key` or `oauth`.
        auth_type: String,
        /// Where a custom endpoint is.
        base_url: Option<String>,
        /// Settings of a custom endpoint: an object.
        settings: Option<Json>,
    },
}

impl ModelView {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Unconfigured => Value::object([("configured", Value::from(false))]),
            Self::Configured { provider, model, auth_type, base_url, settings } => {
                let mut members = vec![
                    ("configured", Value::from(true)),
                    ("provider", Value::from(provider.as_str())),
                    ("model", Value::from(model.as_str())),
                    ("authType", Value::from(auth_type.as_str())),
                ];
                push_endpoint(&mut members, base_url.as_deref(), settings.as_ref());
                Value::object(members)
            }
        }
    }
}

fn push_endpoint(members: &mut Vec<(&'static str, Value)>, base_url: Option<&str>, settings: Option<&Json>) {
    if let Some(base_url) = base_url {
        members.push(("baseUrl", Value::from(base_url)));
    }
    if let Some(settings) = settings {
        members.push(("settings", settings.value()));
    }
}

/// A provider of the catalogue, with its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueProvider {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its models: id and name.
    pub models: Vec<(String, String)>,
}

/// `{providers:[{id, name, models:[{id, name}]}]}`
pub fn catalogue(providers: &[CatalogueProvider]) -> Value {
    let named = |id: &str, name: &str| [("id", Value::from(id)), ("name", Value::from(name))];
    let providers = providers.iter().map(|provider| {
        let models = provider.models.iter().map(|(id, name)| Value::object(named(id, name))).collect();
        let models = [("models", Value::Array(models))];
        Value::object(named(&provider.id, &provider.name).into_iter().chain(models))
    });
    Value::object([("providers", Value::Array(providers.collect()))])
}

/// A provider whose credential the tenant has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The model last chosen at it.
    pub model: String,
    /// `api_key` or `oauth`.
    pub auth_type: String,
    /// Where a custom endpoint is.
    pub base_url: Option<String>,
    /// Settings of a custom endpoint: an object.
    pub settings: Option<Json>,
    /// When it was set last, ISO 8601.
    pub last_updated: String,
    /// Whether turns use it now.
    pub active: bool,
}

/// `{providers:[{id, name, model, authType, baseUrl?, settings?, lastUpdated, active}]}`
pub fn providers(providers: &[ProviderView]) -> Value {
    let providers = providers.iter().map(|provider| {
        let mut members = vec![
            ("id", Value::from(provider.id.as_str())),
            ("name", Value::from(provider.name.as_str())),
            ("model", Value::from(provider.model.as_str())),
            ("authType", Value::from(provider.auth_type.as_str())),
        ];
        push_endpoint(&mut members, provider.base_url.as_deref(), provider.settings.as_ref());
        members.push(("lastUpdated", Value::from(provider.last_updated.as_str())));
        members.push(("active", Value::from(provider.active)));
        Value::object(members)
    });
    Value::object([("providers", Value::Array(providers.collect()))])
}
