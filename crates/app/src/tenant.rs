//! The tenant as a whole: status, readiness, seed (api 3.1, 7.2).

use nylorun_domain::check::Path;
use nylorun_domain::json::Value;
use nylorun_domain::sandbox::SandboxConfig;
use nylorun_domain::time::Millis;
use nylorun_store::{FIXTURE_MODEL, TENANT_CREATED_AT, TENANT_NAME};
use nylorun_wire::model::ModelView;
use nylorun_wire::tenant::{Seed, Seeded, TenantStatus};

use crate::sandbox::SANDBOX_CONFIG;
use crate::{App, Error};

/// The preferred backend of workspaces.
const SANDBOX_BACKEND: &str = "sandbox.backend";

/// Whether this process can do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The tenant is open.
    pub tenant: bool,
    /// The database answers.
    pub database: bool,
}

impl App {
    /// The tenant's status.
    pub async fn tenant_status(&self) -> Result<TenantStatus, Error> {
        let store = self.store();
        let (sessions, running_sessions) = store.session_counts().await?;
        let model = self.model_view().await?;
        let created_at = store.setting_get(TENANT_CREATED_AT).await?.and_then(|text| text.parse().ok()).map(Millis);
        let created_at = created_at.unwrap_or(Millis(0));
        let agents = store.agent_list().await?.into_iter().map(|agent| agent.id).collect();
        Ok(TenantStatus {
            id: self.tenant_id().clone(),
            name: store.setting_get(TENANT_NAME).await?.unwrap_or_else(|| "default".to_owned()),
            created_at,
            updated_at: created_at,
            schema_version: nylorun_store::schema_version(),
            path: self.parts().host.path.clone(),
            store_ok: store.check_writes().await.is_ok(),
            scheduler_ok: true,
            model_ok: model != ModelView::Unconfigured && self.parts().vault.opens().await.is_ok(),
            schema_ok: true,
            model,
            agents,
            sessions,
            running_sessions,
            uncertain_effects: store.effect_count_uncertain().await?,
            sandbox_backend: self.parts().backends.backends().await.backend.map(str::to_owned),
            sandboxes_retained: store.workspace_count().await?,
            extra: vec![("counters", self.counters())],
        })
    }

    /// What this process wrote since it started, as the store counts it, and the frames that it made for followers.
    fn counters(&self) -> Value {
        let counts = self.store().db().counts();
        let number = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        Value::object([
            ("writes", number(counts.writes)),
            ("commits", number(counts.commits)),
            ("statements", number(counts.statements)),
            ("frames", number(self.parts().live.frames_made())),
        ])
    }

    /// Whether this process can do its work.
    pub async fn ready(&self) -> Checks {
        let store = self.store();
        let database = store.setting_get(TENANT_NAME).await.is_ok() && store.check_writes().await.is_ok();
        Checks { tenant: true, database }
    }

    /// Writes those settings that are not set.
    pub async fn seed(&self, seed: Seed) -> Result<Seeded, Error> {
        let sandbox = Path::ROOT.name("sandbox");
        let read = |config| SandboxConfig::read(config, &sandbox.name("config"));
        seed.sandbox_config.as_ref().map(read).transpose().map_err(Error::Invalid)?;
        let mut seeded = Seeded::default();
        let is_model_set = self.model_view().await? != ModelView::Unconfigured;
        let settings = [
            (SANDBOX_BACKEND, seed.sandbox_backend),
            (SANDBOX_CONFIG, seed.sandbox_config.map(|config| config.as_str().to_owned())),
        ];
        for (name, value) in settings.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if self.store().setting_get(name).await?.is_some() {
                seeded.kept.push(name);
            } else {
                self.store().setting_seed(name, &value).await?;
                seeded.applied.push(name);
            }
        }
        if seed.fixture_model && is_model_set {
            seeded.kept.push(FIXTURE_MODEL);
        } else if seed.fixture_model {
            self.store().setting_seed(FIXTURE_MODEL, "true").await?;
            seeded.applied.push(FIXTURE_MODEL);
        }
        match seed.model {
            None => {}
            Some(_) if is_model_set || seed.fixture_model => seeded.kept.push("model"),
            Some(model) => {
                self.put_model(model, None).await?;
                seeded.applied.push("model");
            }
        }
        Ok(seeded)
    }
}
