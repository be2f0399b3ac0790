//! `nylorun migrate`: the database is brought to this version's schema, as a server does when it starts.

use nylorun_store::db::{DatabaseUrl, OlderSchema};

use crate::cli::{Failure, HomeArgs, MigrateArgs};
use crate::config::database_of_process;
use crate::home::Home;
use crate::runtime::open_database;
use crate::serve::multi_thread_runtime;

/// Migrates the database of the home directory, or the one that `NYLORUN_DATABASE_URL` names.
///
/// # Errors
/// The database cannot be opened, is newer than this program, or a migration failed.
pub(crate) fn run(args: MigrateArgs) -> Result<(), Failure> {
    if args.check {
        return check(&args.home);
    }
    let database = match database_of_process()? {
        Some(database) => database,
        None => Home::prepare(&args.home.directory()?)?.database(),
    };
    multi_thread_runtime()?.block_on(async {
        let db = open_database(&database, OlderSchema::Migrate).await?;
        db.close().await;
        println_version()
    })
}

/// Says whether the database has this version's schema, and changes nothing.
fn check(home: &HomeArgs) -> Result<(), Failure> {
    let database = match database_of_process()? {
        Some(database) => database,
        None => Home::existing(&home.directory()?)?.database(),
    };
    if let DatabaseUrl::Sqlite(path) = &database
        && !path.exists()
    {
        return Err(Failure::not_running(format!("there is no database at {}", path.display()))
            .remedy("`nylorun migrate` makes it, and so does the first start"));
    }
    multi_thread_runtime()?.block_on(async {
        open_database(&database, OlderSchema::Refuse).await?.close().await;
        println_version()
    })
}

fn println_version() -> Result<(), Failure> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "the database has schema version {}", nylorun_store::schema_version())?;
    Ok(())
}
