//! Where the database is: the text of `NYLORUN_DATABASE_URL`, checked once.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::config::SslMode;

/// A database that this build can open. Its `Display` and `Debug` never show a password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file. Its folder must exist; the file is made when it is missing.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database, as the driver understands the URL.
    Postgres(Box<tokio_postgres::Config>),
}

/// A text that names no database. The text itself is never repeated, since it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither `sqlite:` nor `postgres://`.
    #[error("a database URL begins with sqlite: or postgres://")]
    Scheme,
    /// `sqlite:` without a file.
    #[error("sqlite: needs the path of a file")]
    NoPath,
    /// The driver does not understand it; its own words.
    #[error("the postgres URL is not valid: {0}")]
    Invalid(String),
    /// TLS was demanded, and this build has none towards the database.
    #[error("TLS towards PostgreSQL is not supported yet: use sslmode=disable or sslmode=prefer on a trusted network")]
    TlsUnsupported,
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return sqlite(rest);
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return postgres(text);
        }
        Err(DatabaseUrlError::Scheme)
    }
}

fn sqlite(rest: &str) -> Result<DatabaseUrl, DatabaseUrlError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(DatabaseUrlError::NoPath);
    }
    Ok(DatabaseUrl::Sqlite(PathBuf::from(path)))
}

fn postgres(text: &str) -> Result<DatabaseUrl, DatabaseUrlError> {
    // The driver knows no verify modes, and its message about them would not say why.
    if text.contains("sslmode=verify") {
        return Err(DatabaseUrlError::TlsUnsupported);
    }
    let config: tokio_postgres::Config = text.parse().map_err(|error| DatabaseUrlError::Invalid(chain(&error)))?;
    match config.get_ssl_mode() {
        SslMode::Require => Err(DatabaseUrlError::TlsUnsupported),
        _ => Ok(DatabaseUrl::Postgres(Box::new(config))),
    }
}

/// An error with its causes on one line, as the driver's own `Display` leaves them out.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::Postgres(config) => {
                let hosts: Vec<String> = config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
                write!(out, "postgres://{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_and_refuses_the_rest() {
        let file = DatabaseUrl::Sqlite(PathBuf::from("/home/x/a.db"));
        assert_eq!("sqlite:/home/x/a.db".parse(), Ok(file.clone()));
        assert_eq!("sqlite:///home/x/a.db".parse(), Ok(file));
        assert_eq!("sqlite:".parse::<DatabaseUrl>(), Err(DatabaseUrlError::NoPath));
        assert_eq!("mysql://x".parse::<DatabaseUrl>(), Err(DatabaseUrlError::Scheme));
        assert!(matches!("postgres://u@h/d".parse(), Ok(DatabaseUrl::Postgres(_))));
    }

    #[test]
    fn refuses_a_demand_for_tls() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://u:secret@h/d?sslmode={mode}");
            assert_eq!(url.parse::<DatabaseUrl>(), Err(DatabaseUrlError::TlsUnsupported));
        }
    }

    #[test]
    fn never_shows_a_password() {
        let url: DatabaseUrl = "postgres://user:hunter2@example.test:5432/agents".parse().unwrap();
        assert!(!format!("{url} {url:?}").contains("hunter2"));
    }
}
