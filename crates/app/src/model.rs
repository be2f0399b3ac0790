//! The tenant's model (api 3.2).

use nylorun_domain::change::TenantWrite;
use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::json::Json;
use nylorun_ports::model_vault::ModelPut;
use nylorun_ports::models::KeysError;
use nylorun_ports::secret::Secret;
use nylorun_store::{FIXTURE_MODEL, NO_PROVIDER, ProviderRow, WriteError};
use nylorun_wire::model::{CatalogueProvider, ModelAuth, ModelChoice, ModelView, ProviderView, PutModel, SelectModel};

use crate::tenant_write::AskedWrite;
use crate::{App, Error};

const CUSTOM: &str = "custom";
/// Provider and model under which the built-in fixture is shown and chosen.
const FIXTURE: &str = "fixture";
/// The kind of credential that providers have.
const API_KEY: &str = "api_key";

/// What became of a selection.
enum Selected {
    /// It was carried out, with this answer.
    Now(Json),
    /// A write of the same key was accepted meanwhile.
    Before,
}

impl App {
    /// The tenant's model, as it is set.
    pub async fn model_view(&self) -> Result<ModelView, Error> {
        if self.store().setting_get(FIXTURE_MODEL).await?.is_some() {
            return Ok(fixture_view());
        }
        Ok(self.store().provider_active().await?.map_or(ModelView::Unconfigured, configured))
    }

    /// Stores a provider's key and makes it the tenant's model. A repetition under the same key gets the first answer,
    /// whatever the model is now.
    pub async fn model_put(&self, body: PutModel) -> Result<Json, Error> {
        let PutModel { idempotency_key, body_hash, model, .. } = body;
        let asked = AskedWrite { operation: "putModel", idempotency_key, body_hash };
        if let Some(answer) = self.answered_before(&asked).await? {
            return Ok(answer);
        }
        let answer = chosen(&model).to_value().to_json();
        match self.put_model(model, Some(asked.accepted(answer.clone()))).await {
            Ok(()) => Ok(answer),
            // A copy of this write may have come first.
            Err(error @ Error::Unavailable { .. }) => self.answered_before(&asked).await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn put_model(&self, choice: ModelChoice, write: Option<TenantWrite>) -> Result<(), Error> {
        self.check_model(&choice.provider, &choice.model, choice.base_url.as_deref())?;
        let key = api_key(&choice.auth)?;
        let put = ModelPut {
            provider: choice.provider,
            model: choice.model,
            base_url: choice.base_url,
            settings: choice.settings.map_or_else(|| Json::from_trusted("{}"), |settings| settings.document),
            key,
            write,
        };
        let (provider, model) = (put.provider.clone(), put.model.clone());
        self.parts().vault.put(put).await.map_err(|error| match error {
            KeysError::Unavailable(message) => Error::Unavailable { message },
            KeysError::Broken(message) => Error::Internal { message },
            KeysError::Unreadable => Error::Internal { message: error.to_string() },
        })?;
        tracing::info!(provider, model, "model set");
        Ok(())
    }

    /// Makes another stored provider, or the fixture, the tenant's model. Stored keys stay. A repetition under the same
    /// key gets the first answer.
    pub async fn model_select(&self, body: SelectModel) -> Result<Json, Error> {
        let asked = AskedWrite {
            operation: "selectModel",
            idempotency_key: body.idempotency_key.clone(),
            body_hash: body.body_hash.clone(),
        };
        loop {
            if let Some(answer) = self.answered_before(&asked).await? {
                return Ok(answer);
            }
            match self.select(&body, &asked).await? {
                Selected::Now(answer) => {
                    tracing::info!(provider = body.provider, model = body.model, "model selected");
                    return Ok(answer);
                }
                Selected::Before => {}
            }
        }
    }

    async fn select(&self, body: &SelectModel, asked: &AskedWrite) -> Result<Selected, Error> {
        if body.provider == FIXTURE {
            check_fixture(body)?;
            let answer = fixture_view().to_value().to_json();
            return selected(answer.clone(), self.store().fixture_select(&asked.accepted(answer)).await);
        }
        self.check_model(&body.provider, &body.model, body.base_url.as_deref())?;
        let stored = self.store().provider_list().await?.into_iter().find(|row| row.provider == body.provider);
        let no_credential = || {
            let provider = &body.provider;
            Error::conflict(format!("no credential is stored for {provider}; set one with PUT /v1/tenant/model"))
        };
        let Some(row) = stored else { return Err(no_credential()) };
        if row.base_url != body.base_url {
            return Err(Error::conflict(format!(
                "the stored key of {} belongs to another baseUrl; set the key again with PUT /v1/tenant/model",
                body.provider
            )));
        }
        let answer = configured(ProviderRow { model: body.model.clone(), ..row }).to_value().to_json();
        let write = asked.accepted(answer.clone());
        let written = self.store().provider_select(&body.provider, &body.model, body.base_url.as_deref(), &write).await;
        match written {
            Err(WriteError::Guard(NO_PROVIDER)) => Err(no_credential()),
            written => selected(answer, written),
        }
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
            settings: shown_settings(Json::from_trusted(row.settings)),
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
            return refuse("provider", format!("{provider:?} is unknown; known are {}", ids.join(", ")));
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

fn selected(answer: Json, written: Result<(), WriteError>) -> Result<Selected, Error> {
    match written {
        Ok(()) => Ok(Selected::Now(answer)),
        Err(WriteError::Duplicate { .. }) => Ok(Selected::Before),
        Err(error) => Err(error.into()),
    }
}

fn refuse<T>(path: &Path<'_>, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid(Problems::one(ProblemCode::Custom, path, message)))
}

fn api_key(auth: &ModelAuth) -> Result<Secret, Error> {
    let path = Path::ROOT.name("auth");
    match auth {
        ModelAuth::ApiKey { key, env } if env.is_empty() => Ok(Secret::new(key.expose())),
        ModelAuth::ApiKey { .. } => {
            refuse(&path.name("env"), "provider settings in auth.env are not available yet; leave env out")
        }
        ModelAuth::OAuth { .. } => {
            refuse(&path.name("type"), "OAuth credentials are not available yet; use type \"api_key\"")
        }
    }
}

fn check_fixture(body: &SelectModel) -> Result<(), Error> {
    if body.model != FIXTURE {
        return refuse(&Path::ROOT.name("model"), "provider fixture has one model: fixture");
    }
    if body.base_url.is_some() {
        return refuse(&Path::ROOT.name("baseUrl"), "provider fixture has no endpoint; leave baseUrl out");
    }
    Ok(())
}

fn fixture_view() -> ModelView {
    ModelView::Configured {
        provider: FIXTURE.to_owned(),
        model: FIXTURE.to_owned(),
        auth_type: API_KEY.to_owned(),
        base_url: None,
        settings: None,
    }
}

/// The view of a stored provider.
fn configured(row: ProviderRow) -> ModelView {
    ModelView::Configured {
        provider: row.provider,
        model: row.model,
        auth_type: row.auth_type,
        base_url: row.base_url,
        settings: shown_settings(Json::from_trusted(row.settings)),
    }
}

/// The view of a choice that is about to be stored.
fn chosen(choice: &ModelChoice) -> ModelView {
    ModelView::Configured {
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        auth_type: choice.auth.as_str().to_owned(),
        base_url: choice.base_url.clone(),
        settings: choice.settings.as_ref().and_then(|settings| shown_settings(settings.document.clone())),
    }
}

fn shown_settings(settings: Json) -> Option<Json> {
    Some(settings).filter(|settings| settings.as_str() != "{}")
}
