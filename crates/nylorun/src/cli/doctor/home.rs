//! The home directory: is it there, are its secrets only its owner's, and does its vault key open them?

use std::path::{Path, PathBuf};

use super::Check;
use crate::disk;
use crate::home::{CREDENTIALS, DATABASE, Exposure, SecretFile};
use crate::local::{self, ListedSecret};

/// Looks at the directory and its files.
pub(super) fn checks(home: &Path) -> Vec<Check> {
    let shown = home.display();
    if home.exists() && !home.is_dir() {
        return vec![Check::fail("home", format!("{shown} is not a directory"), "choose another with --home")];
    }
    if !home.is_dir() {
        return vec![Check::warn("home", format!("{shown} is not there yet"), "`nylorun start` makes it")];
    }
    let mut checks = vec![folder(home)];
    checks.extend(disk::free_bytes(home).map(|free| room(home, free)));
    checks.extend(secret(home, "host-credentials.json", &CREDENTIALS));
    checks.extend(secret(home, "keys/vault-kek", &VAULT_KEY));
    checks.extend(secret(home, "tenant/nylorun.db", &DATABASE));
    checks
}

/// Below this a server soon stops taking messages.
const LITTLE_ROOM: u64 = 256 << 20;
/// Below this it takes none.
const NO_ROOM: u64 = 1 << 20;

fn room(home: &Path, free: u64) -> Check {
    let detail = format!("{} free on the disk of {}", disk::size(free), home.display());
    match free {
        ..NO_ROOM => Check::fail("disk", detail, disk::remedy(home)),
        NO_ROOM..LITTLE_ROOM => Check::warn("disk", detail, disk::remedy(home)),
        LITTLE_ROOM.. => Check::ok("disk", detail),
    }
}

/// The vault key's file.
const VAULT_KEY: SecretFile = SecretFile::new("the key to every sealed secret", "; and ask who may have read it");

fn folder(home: &Path) -> Check {
    let shown = home.display().to_string();
    match Exposure::of(home) {
        Ok(None) => Check::ok("home", shown),
        Ok(Some(exposure @ Exposure::Mode(_))) => Check::warn(
            "home",
            format!("{shown} {exposure}"),
            format!("run `chmod 700 {shown}`; the next start does it too"),
        ),
        Ok(Some(exposure @ Exposure::Owner(_))) => {
            Check::fail("home", format!("{shown} {exposure}"), "run the server as that user, or choose another --home")
        }
        Err(error) => Check::fail("home", format!("{shown}: {error}"), "look at its permissions"),
    }
}

/// `None` for a file that is not there: the server's start makes it.
fn secret(home: &Path, name: &str, file: &SecretFile) -> Option<Check> {
    let path: PathBuf = home.join(name);
    Some(match Exposure::of(&path).ok()? {
        None => Check::ok(name, "only its owner may use it"),
        Some(exposure) => Check::fail(name, exposure.to_string(), file.remedy(&path, exposure)),
    })
}

/// Looks whether the home's vault key opens what is sealed in its database. Nothing to say where there is none.
pub(super) async fn sealed(home: &Path) -> Vec<Check> {
    if !home.join("tenant").is_dir() {
        return Vec::new();
    }
    match local::secret_list(home).await {
        Ok(secrets) => secrets.iter().map(|secret| sealed_check(secret, home)).collect(),
        Err(failure) => {
            let remedy = failure.advice().unwrap_or("look into the server's log, and at the file and its permissions");
            vec![Check::warn("secrets", failure.to_string(), remedy)]
        }
    }
}

fn sealed_check(secret: &ListedSecret, home: &Path) -> Check {
    let name = format!("key of {}", secret.provider);
    if secret.opens {
        return Check::ok(&name, "sealed, and the vault key opens it");
    }
    let path = home.join("keys/vault-kek");
    let how = if path.exists() { "was sealed with another vault key than" } else { "cannot be opened without" };
    let detail = format!("the credential of the model provider {how} {}", path.display());
    let remedy = format!(
        "stop the server and restore that file from the backup; or give the secret up: stop the server, \
         `nylorun secrets discard --yes --home {}`, start it, `nylorun model set {}/MODEL`",
        home.display(),
        secret.provider
    );
    Check::fail(&name, detail, remedy)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::Verdict;
    use super::*;

    #[test]
    fn secrets_that_others_may_read_are_found() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(home.path().join("keys")).unwrap();
        for (name, mode) in [("host-credentials.json", 0o600), ("keys/vault-kek", 0o640)] {
            fs::write(home.path().join(name), "x").unwrap();
            fs::set_permissions(home.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        let found: Vec<(String, Verdict)> =
            checks(home.path()).into_iter().map(|check| (check.name, check.verdict)).collect();
        let expected =
            [("home", Verdict::Warn), ("host-credentials.json", Verdict::Ok), ("keys/vault-kek", Verdict::Fail)];
        // How full the disk of the tests is, is not for them to say.
        let found: Vec<_> = found.into_iter().filter(|(name, _)| name != "disk").collect();
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn a_disk_without_room_is_a_fault() {
        let check = |free| room(Path::new("/h"), free);
        for (free, verdict) in
            [(0, Verdict::Fail), (1 << 20, Verdict::Warn), (256 << 20, Verdict::Ok), (1 << 40, Verdict::Ok)]
        {
            assert_eq!(check(free).verdict, verdict, "{free}");
        }
        assert_eq!(check(4096).detail, "4.0 KiB free on the disk of /h");
        assert!(check(4096).remedy.unwrap().starts_with("make room on the disk of /h"));
    }

    #[test]
    fn a_secret_that_does_not_open_is_a_fault_with_its_remedy() {
        let home = tempfile::tempdir().unwrap();
        let secret = |opens| ListedSecret { provider: "anthropic".to_owned(), kek_id: "00".to_owned(), opens };
        assert_eq!(sealed_check(&secret(true), home.path()).verdict, Verdict::Ok);
        let lost = sealed_check(&secret(false), home.path());
        assert_eq!((lost.name.as_str(), lost.verdict), ("key of anthropic", Verdict::Fail));
        assert!(lost.detail.contains("cannot be opened without"), "{}", lost.detail);
        assert!(lost.remedy.unwrap().contains("nylorun secrets discard"));
    }

    #[test]
    fn a_missing_home_is_no_fault() {
        let home = tempfile::tempdir().unwrap();
        let found = checks(&home.path().join("none"));
        assert_eq!((found.len(), found[0].verdict), (1, Verdict::Warn));
    }
}
