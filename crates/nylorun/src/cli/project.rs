//! A project's link to its server: `.nylorun/link.json` and `.nylorun/credentials.json` in its directory
//! (overview, Commands and files; sandbox-and-definitions e1).

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::home::{CredentialsFile, LinkFile, read};
use crate::home::write_private;

const FOLDER: &str = ".nylorun";
const LINK: &str = "link.json";

/// A linked project.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// Its folder `.nylorun`.
    folder: PathBuf,
    link: LinkFile,
}

impl Project {
    /// The project of the current directory.
    ///
    /// # Errors
    /// There is no current directory, or the link is damaged.
    pub(crate) fn of_process() -> Result<Option<Self>, Failure> {
        Self::find(&current_directory()?)
    }

    /// The project of a directory: the nearest link in it or above it.
    ///
    /// # Errors
    /// The link is damaged.
    pub(crate) fn find(directory: &Path) -> Result<Option<Self>, Failure> {
        for directory in directory.ancestors() {
            let folder = directory.join(FOLDER);
            if let Some(link) = read(&folder.join(LINK))? {
                return Ok(Some(Self { folder, link }));
            }
        }
        Ok(None)
    }

    /// Where its server is.
    pub(crate) fn url(&self) -> &str {
        &self.link.url
    }

    /// The file that says so.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join(LINK)
    }

    /// The keys for its server, if there are any.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn credentials(&self) -> Result<Option<CredentialsFile>, Failure> {
        read(&self.folder.join("credentials.json"))
    }

    /// Its server's home directory, where it is still there: a project may have come from another machine.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.link.home.clone().filter(|home| home.is_absolute() && home.is_dir())
    }

    /// Links a directory, or renews the link to the same home directory that it has from a directory above. Gives
    /// `None` where the home directory itself lies in this place: it needs no link.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(
        directory: &Path,
        link: LinkFile,
        credentials: &CredentialsFile,
    ) -> Result<Option<Self>, Failure> {
        // A damaged link is what is to be mended.
        let known = Self::find(directory).ok().flatten().filter(|project| project.link.home == link.home);
        let folder = known.map_or_else(|| directory.join(FOLDER), |project| project.folder);
        if link.home.as_deref().is_some_and(|home| is_same(home, &folder)) {
            return Ok(None);
        }
        let failed = |error: io::Error| Failure::new(format!("cannot write {}: {error}", folder.display()));
        make_private(&folder).map_err(failed)?;
        ignore_in_git(&folder.join(".gitignore")).map_err(failed)?;
        write_private(&folder.join("credentials.json"), credentials)?;
        write_private(&folder.join(LINK), &link)?;
        Ok(Some(Self { folder, link }))
    }
}

/// Where this process was called.
///
/// # Errors
/// The directory is gone.
pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::new(format!("no current directory: {error}")))
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(folder, Permissions::from_mode(mode & 0o700)) }
}

/// Before the keys are there. A file that somebody wrote stays as it is.
fn ignore_in_git(path: &Path) -> io::Result<()> {
    if path.exists() {
        Ok(())
    } else {
        fs::write(path, "# Keys and addresses of this machine: never commit them.\n*\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::home::NamedKey;
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn link(url: &str, home: &Path) -> LinkFile {
        let (host_id, tenant_id) = (Some("h".to_owned()), Some("t".to_owned()));
        LinkFile { format: 1, host_id, tenant_id, url: url.to_owned(), home: Some(home.to_owned()) }
    }

    fn keys() -> CredentialsFile {
        let named = |id: &str| Some(NamedKey { id: id.to_owned(), key: "a".repeat(64) });
        CredentialsFile { format: 1, application_key: named("local"), management_key: named("local-management") }
    }

    #[test]
    fn what_is_written_is_private_and_found_from_below() {
        let root = tempfile::tempdir().unwrap();
        let (project, home) = (root.path().join("project"), root.path().join("home"));
        for folder in [project.join("src/deep"), project.join(FOLDER), home.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::set_permissions(project.join(FOLDER), Permissions::from_mode(0o755)).unwrap();
        assert!(Project::find(&project).unwrap().is_none());
        Project::write(&project, link("http://one", &home), &keys()).unwrap().unwrap();
        let folder = project.join(FOLDER);
        let modes = ["", LINK, "credentials.json"].map(|name| mode(&folder.join(name)));
        assert_eq!(modes, [0o700, 0o600, 0o600]);
        assert!(fs::read_to_string(folder.join(".gitignore")).unwrap().lines().any(|line| line == "*"));

        let found = Project::find(&project.join("src/deep")).unwrap().unwrap();
        assert_eq!((found.url(), found.home(), found.file()), ("http://one", Some(home.clone()), folder.join(LINK)));
        assert_eq!(found.credentials().unwrap(), Some(keys()));
        // The same home: the link above is renewed. Another one: this directory is a project of its own.
        let renewed = Project::write(&project.join("src"), link("http://two", &home), &keys()).unwrap().unwrap();
        assert_eq!(renewed.folder, folder);
        let own = Project::write(&project.join("src"), link("http://three", root.path()), &keys()).unwrap().unwrap();
        assert_eq!(own.folder, project.join("src").join(FOLDER));
        fs::remove_dir(&home).unwrap();
        assert_eq!(Project::find(&project).unwrap().unwrap().home(), None, "it is not on this machine");
    }

    #[test]
    fn a_home_is_not_linked_to_itself() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(FOLDER);
        fs::create_dir(&home).unwrap();
        assert!(Project::write(root.path(), link("http://one", &home), &keys()).unwrap().is_none());
        assert!(fs::read_dir(&home).unwrap().next().is_none());
    }

    #[test]
    fn a_link_of_another_program_needs_only_its_url() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(FOLDER)).unwrap();
        fs::write(root.path().join(FOLDER).join(LINK), r#"{"url":"http://x","tenant":{"name":"a"}}"#).unwrap();
        let found = Project::find(root.path()).unwrap().unwrap();
        assert_eq!((found.url(), found.home(), found.credentials().unwrap()), ("http://x", None, None));
    }
}
