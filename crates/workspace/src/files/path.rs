//! Paths as POSIX has them.

use std::path::{Component, Path, PathBuf};

use nylorun_domain::workspace::WORKSPACE_DIR;

/// The normalised absolute path that `path` names: relative ones stand in the workspace (sandbox-and-definitions a3,
/// path rule).
pub(crate) fn absolute(path: &str) -> PathBuf {
    normalize(&Path::new(WORKSPACE_DIR).join(path))
}

/// Resolves `.` and `..` without looking at any file; `..` at the root stays there.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_in_the_workspace_and_never_above_the_root() {
        for (given, expected) in [
            ("a.txt", "/workspace/a.txt"),
            ("./a//b/", "/workspace/a/b"),
            ("../x", "/x"),
            ("../../../../etc/passwd", "/etc/passwd"),
            ("/tmp/../workspace/./a", "/workspace/a"),
            ("/", "/"),
            (".", "/workspace"),
        ] {
            assert_eq!(absolute(given), Path::new(expected), "{given}");
        }
    }
}
