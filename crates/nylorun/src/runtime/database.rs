//! Opening the database and the tenant in it.

use std::sync::Arc;

use nylorun_domain::id::TenantId;
use nylorun_store::db::{DatabaseUrl, DbOptions, OlderSchema};
use nylorun_store::{Db, Fault, NewTenant, OpenError, Store};
use nylorun_turns::{now, ulid};

use crate::cli::Failure;
use crate::config::Config;
use crate::disk;

/// Opens a database.
pub(crate) async fn open_database(database: &DatabaseUrl, older: OlderSchema) -> Result<Db, Failure> {
    Db::open(database, &DbOptions { older, ..DbOptions::default() }).await.map_err(|error| unopened(database, &error))
}

/// A database that cannot be opened, with what would help where that is known.
fn unopened(database: &DatabaseUrl, error: &OpenError) -> Failure {
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        what = format!("{what}: {inner}");
        cause = inner.source();
    }
    match (error, error.fault()) {
        (OpenError::SchemaOld { .. }, _) => {
            Failure::new(what).remedy("`nylorun migrate`; the next start of a server does it too")
        }
        (_, Some(Fault::NoWrites)) => {
            let refused = error.reason().unwrap_or(what);
            Failure::new(format!("cannot write the database {database}: {refused}")).remedy(match database {
                DatabaseUrl::Sqlite(path) => disk::remedy(path),
                DatabaseUrl::Postgres(_) => "make room on the disk of the database server".to_owned(),
            })
        }
        (_, Some(Fault::Passing | Fault::ForGood) | None) => Failure::new(what),
    }
}

/// Opens the tenant, which the first start makes.
pub(super) async fn open_tenant(db: &Arc<Db>, config: &Config) -> Result<Store, Failure> {
    let fresh = NewTenant {
        id: TenantId::from_trusted(config.tenant_id.clone().unwrap_or_else(|| format!("tn_{}", ulid()))),
        name: config.tenant_name.clone().unwrap_or_else(|| "default".to_owned()),
        created_at: now(),
    };
    let failed = |error| Failure::new(format!("cannot open the tenant: {error}"));
    let store = Store::open(Arc::clone(db), &fresh).await.map_err(failed)?;
    store.usage_prepare().await.map_err(failed)?;
    Ok(store)
}
