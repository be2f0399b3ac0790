//! The tenant's model (api 3.2).

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::json::Json;
use nylorun_ports::model_vault::ModelPut;
use nylorun_ports::models::KeysError;
use nylorun_ports::secret::Secret;
use nylorun_store::{FIXTURE_MODEL, NO_PROVIDER, ProviderRow, WriteError};
use nylorun_turns::now;
use nylorun_wire::model::{CatalogueProvider, ModelAuth, ModelChoice, ModelView, ProviderView, PutModel, SelectModel};

use crate::{App, Error};

const CUSTOM: &str = "custom";
/// Provider and model under which the built-in fixture is shown and chosen.
const FIXTURE: &str = "fixture";

impl App {
    /// The tenant's model, as it is set.
    pub async fn model_view(&self) -> Result<ModelView, Error> {
        if self.store().setting_get(FIXTURE_MODEL).await?.is_some() {
            return Ok(ModelView::Configured {
                provider: FIXTURE.to_owned(),
                model: FIXTURE.to_owned(),
                auth_type: "api_key".to_owned(),
                base_url: None,
                settings: None,
            });
        }
        Ok(match self.store().provider_active().await? {
            None => ModelView::Unconfigured,
            Some(row) => ModelView::Configured {
                provider: row.provider,
                model: row.model,
                auth_type: row.auth_type,
                base_url: row.base_url,
                settings: Some(row.settings).filter(|settings| settings != "{}").map(Json::from_trusted),
            },
        })
    }

    /// Stores a provider's key and makes it the tenant's model.
    pub async fn model_put(&self, body: PutModel) -> Result<ModelView, Error> {
        self.put_model(body.model).await?;
        self.model_view().await
    }

    pub(crate) async fn put_model(&self, choice: ModelChoice) -> Result<(), Error> {
        self.check_model(&choice.provider, &choice.model, choice.base_url.as_deref())?;
        let key = match &choice.auth {
            ModelAuth::ApiKey { key, env } if env.is_empty() => Secret::new(key.expose()),
            ModelAuth::ApiKey { .. } => {
                let message = "provider settings in auth.env are not available yet; leave env out";
                return Err(Error::Invalid(Problems::one(
                    ProblemCode::Custom,
                    &Path::ROOT.name("auth").name("env"),
                    message,
                )));
            }
            ModelAuth::OAuth { .. } => {
                let message = "OAuth credentials are not available yet; use type \"api_key\"";
                return Err(Error::Invalid(Problems::one(
                    ProblemCode::Custom,
                    &Path::ROOT.name("auth").name("type"),
                    message,
                )));
            }
        };
        let put = ModelPut {
            provider: choice.provider,
            model: choice.model,
            base_url: choice.base_url,
            settings: choice.settings.map_or_else(|| Json::from_trusted("{}"), |settings| settings.document),
            key,
        };
        let (provider, model) = (put.provider.clone(), put.model.clone());
        self.parts().vault.put(put).await.map_err(|error| match error {
            KeysError::Unavailable(message) => Error::Unavailable { message },
            KeysError::Unreadable => Error::Internal { message: error.to_string() },
        })?;
        tracing::info!(provider, model, "model set");
        Ok(())
    }

    /// Makes another stored provider, or the fixture, the tenant's model. Stored keys stay.
    pub async fn model_select(&self, body: SelectModel) -> Result<ModelView, Error> {
        if body.provider == FIXTURE {
            return self.select_fixture(&body).await;
        }
        self.check_model(&body.provider, &body.model, body.base_url.as_deref())?;
        let stored = self.store().provider_list().await?.into_iter().find(|row| row.provider == body.provider);
        if stored.is_some_and(|row| row.base_url != body.base_url) {
            return Err(Error::conflict(format!(
                "the stored key of {} belongs to another baseUrl; set the key again with PUT /v1/tenant/model",
                body.provider
            )));
        }
        let selected = self.store().provider_select(&body.provider, &body.model, body.base_url.as_deref(), now()).await;
        match selected {
            Ok(()) => {
                tracing::info!(provider = body.provider, model = body.model, "model selected");
                self.model_view().await
            }
            Err(WriteError::Guard(NO_PROVIDER)) => Err(Error::conflict(format!(
                "no credential is stored for {}; set one with PUT /v1/tenant/model",
                body.provider
            ))),
            Err(error) => Err(error.into()),
        }
    }

    async fn select_fixture(&self, body: &SelectModel) -> Result<ModelView, Error> {
        let refuse = |name: &str, message: &str| {
            Err(Error::Invalid(Problems::one(ProblemCode::Custom, &Path::ROOT.name(name), message)))
        };
        if body.model != FIXTURE {
            return refuse("model", "provider fixture has one model: fixture");
        }
        if body.base_url.is_some() {
            return refuse("baseUrl", "provider fixture has no endpoint; leave baseUrl out");
        }
        self.store().setting_put(FIXTURE_MODEL, "true").await?;
        tracing::info!(provider = FIXTURE, model = FIXTURE, "model selected");
        self.model_view().await
    }

    /// Providers and models that this build knows.
    pub fn model_catalogue(&self) -> &[CatalogueProvider] {
        &self.parts().catalogue
    }

    /// Providers whose key is stored.
    pub async fn model_providers(&self) -> Result<Vec<ProviderView>, Error> {
        let fixture = self.store().setting_get(FIXTURE_MODEL).await?.is_some();
        let rows = self.store().provider_list().await?;
        Ok(rows.into_iter().map(|row| self.provider_view(row, fixture)).collect())
    }

    fn provider_view(&self, row: ProviderRow, fixture: bool) -> ProviderView {
        let known = self.parts().catalogue.iter().find(|known| known.id == row.provider);
        ProviderView {
            name: known.map_or_else(|| row.provider.clone(), |known| known.name.clone()),
            id: row.provider,
            model: row.model,
            auth_type: row.auth_type,
            base_url: row.base_url,
            settings: Some(row.settings).filter(|settings| settings != "{}").map(Json::from_trusted),
            last_updated: row.updated_at.to_iso(),
            active: row.is_active && !fixture,
        }
    }

    fn check_model(&self, provider: &str, model: &str, base_url: Option<&str>) -> Result<(), Error> {
        let refuse = |name: &str, message: String| {
            Err(Error::Invalid(Problems::one(ProblemCode::Custom, &Path::ROOT.name(name), message)))
        };
        if provider == CUSTOM {
            return match base_url {
                None => {
                    refuse("baseUrl", "provider custom needs the endpoint's baseUrl, usually ending in /v1".to_owned())
                }
                Some(url) if url.starts_with("http://") || url.starts_with("https://") => Ok(()),
                Some(url) => refuse("baseUrl", format!("{url:?} is no http or https URL")),
            };
        }
        let Some(known) = self.parts().catalogue.iter().find(|known| known.id == provider) else {
            let ids: Vec<&str> = self.parts().catalogue.iter().map(|known| known.id.as_str()).collect();
            return refuse("provider", format!("{provider:?} is unknown; known are {CUSTOM} and {}", ids.join(", ")));
        };
        if base_url.is_some() {
            return refuse("baseUrl", format!("provider {provider} has its own endpoint; leave baseUrl out"));
        }
        if known.models.iter().any(|(id, _)| id == model) {
            return Ok(());
        }
        let ids: Vec<&str> = known.models.iter().map(|(id, _)| id.as_str()).collect();
        refuse(
            "model",
            format!("{provider} has no model {model:?} that this server knows; known are {}", ids.join(", ")),
        )
    }
}
