//! The text files of the repository, read once for all rules.

use std::fs;
use std::path::Path;

use super::Error;

/// Folders that hold what is built or fetched, never what is written. A name that ends in `*` is a prefix.
const SKIPPED: [&str; 6] = [".git", "target", "target-*", "node_modules", ".cache", ".nylorun"];

/// Files beyond this size are data, and no rule reads them.
const LARGEST: u64 = 2 * 1024 * 1024;

/// One text file.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// From the repository's root, with `/`.
    pub(super) path: String,
    /// The whole text.
    pub(super) text: String,
}

/// All text files, sorted by path, and the paths of everything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Files that are UTF-8.
    pub(super) files: Vec<File>,
    /// Every path, folders too: what a link may point at.
    pub(super) paths: Vec<String>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub(super) fn read(root: &Path) -> Result<Self, Error> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.paths.sort();
        Ok(tree)
    }

    /// The text at `path`, if there is such a file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Files whose name ends in `.extension`.
    pub(super) fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.rsplit_once('.').is_some_and(|(_, end)| end == extension))
    }

    fn read_folder(&mut self, folder: &Path, inside: &str) -> Result<(), Error> {
        let fail = |source| Error::Read { path: folder.display().to_string(), source };
        for entry in fs::read_dir(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_skipped(&name) {
                continue;
            }
            let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            self.paths.push(path.clone());
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                self.read_folder(&entry.path(), &path)?;
            } else if kind.is_file() {
                self.read_file(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, file: &Path, path: String) -> Result<(), Error> {
        let fail = |source| Error::Read { path: file.display().to_string(), source };
        if fs::metadata(file).map_err(fail)?.len() > LARGEST {
            return Ok(());
        }
        if let Ok(text) = String::from_utf8(fs::read(file).map_err(fail)?) {
            self.files.push(File { path, text });
        }
        Ok(())
    }
}

fn is_skipped(name: &str) -> bool {
    SKIPPED.iter().any(|skipped| match skipped.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *skipped,
    })
}

#[cfg(test)]
impl Tree {
    /// A tree made of samples.
    pub(super) fn of(samples: &[(&str, &str)]) -> Self {
        let files: Vec<File> =
            samples.iter().map(|(path, text)| File { path: (*path).into(), text: (*text).into() }).collect();
        let paths = files.iter().map(|file| file.path.clone()).collect();
        Self { files, paths }
    }
}

#[cfg(test)]
mod tests {
    use super::is_skipped;

    #[test]
    fn build_folders_are_skipped() {
        let answers: Vec<bool> = ["target", "target-x", ".git", "crates", "targets.rs"].map(is_skipped).into();
        assert_eq!(answers, [true, true, true, false, false]);
    }
}
