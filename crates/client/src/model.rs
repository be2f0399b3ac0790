//! The tenant's model (api 3.2).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Which model the tenant uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelView {
    /// Whether one is chosen.
    pub configured: bool,
    /// The provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where requests go, for provider `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A model, with or without where it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The provider's id, such as `anthropic` or `custom`.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Only for provider `custom`: an OpenAI-compatible endpoint, as it documents itself, usually ending in `/v1`.
    pub base_url: Option<String>,
}

/// A model with the credential to call it.
#[derive(Clone, Debug, PartialEq)]
pub struct SetModel {
    /// The model.
    pub choice: ModelChoice,
    /// Settings of a custom endpoint: `contextWindow`, `maxTokens`, `reasoning`, `compat`.
    pub settings: Option<Map<String, Value>>,
    /// The credential.
    pub auth: ModelAuth,
}

/// A provider's credential. `Debug` shows nothing of it.
#[derive(Clone, PartialEq)]
pub enum ModelAuth {
    /// A key as the provider gave it.
    ApiKey(String),
}

impl fmt::Debug for ModelAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(_) => f.write_str("ApiKey(…)"),
        }
    }
}

/// A provider that has a credential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderView {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its model, chosen last.
    #[serde(default)]
    pub model: Option<String>,
    /// Whether it is the tenant's choice now.
    #[serde(default)]
    pub active: bool,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A provider in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderModels {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// What it offers.
    #[serde(default)]
    pub models: Vec<ProviderModel>,
}

/// A model in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderModel {
    /// The provider's name of it.
    pub id: String,
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ModelChoice {
    pub(crate) fn to_body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("provider".into(), json!(self.provider));
        body.insert("model".into(), json!(self.model));
        if let Some(base_url) = &self.base_url {
            body.insert("baseUrl".into(), json!(base_url));
        }
        body
    }
}

impl SetModel {
    pub(crate) fn to_body(&self) -> Map<String, Value> {
        let mut body = self.choice.to_body();
        if let Some(settings) = &self.settings {
            body.insert("settings".into(), json!(settings));
        }
        let auth = match &self.auth {
            ModelAuth::ApiKey(key) => json!({"type": "api_key", "key": key}),
        };
        body.insert("auth".into(), auth);
        body
    }
}
