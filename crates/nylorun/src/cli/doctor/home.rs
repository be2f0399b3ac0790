//! The home directory: is it there, and are its secrets only its owner's?

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Check;

/// Files that only their owner may read.
const SECRETS: [&str; 2] = ["host-credentials.json", "keys/vault-kek"];

/// Looks at the directory and its files.
pub(super) fn checks(home: &Path) -> Vec<Check> {
    let shown = home.display();
    if !home.is_dir() {
        return vec![Check::warn("home", format!("{shown} is not there yet"), "`nylorun serve` makes it")];
    }
    let mut checks = vec![Check::ok("home", shown.to_string())];
    checks.extend(SECRETS.iter().filter_map(|name| secret(home, name)));
    checks
}

/// `None` for a file that is not there: the server's start makes it.
fn secret(home: &Path, name: &str) -> Option<Check> {
    let path = home.join(name);
    let mode = std::fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Some(Check::ok(name, format!("mode {mode:04o}")));
    }
    let detail = format!("mode {mode:04o}: others on this machine may read it");
    Some(Check::fail(name, detail, format!("chmod 600 {}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::super::Verdict;
    use super::*;

    #[test]
    fn secrets_that_others_may_read_are_found() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("keys")).unwrap();
        for (name, mode) in [("host-credentials.json", 0o600), ("keys/vault-kek", 0o640)] {
            fs::write(home.path().join(name), "x").unwrap();
            fs::set_permissions(home.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        let found: Vec<(String, Verdict)> =
            checks(home.path()).into_iter().map(|check| (check.name, check.verdict)).collect();
        let expected =
            [("home", Verdict::Ok), ("host-credentials.json", Verdict::Ok), ("keys/vault-kek", Verdict::Fail)];
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn a_missing_home_is_no_fault() {
        let home = tempfile::tempdir().unwrap();
        let found = checks(&home.path().join("none"));
        assert_eq!((found.len(), found[0].verdict), (1, Verdict::Warn));
    }
}
