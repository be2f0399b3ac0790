//! Skills: folders of files that the model may load.

use std::collections::BTreeMap;

use crate::check::{Place, ProblemCode, TextRule};
use crate::grammar::{is_file_hash, is_relative_path};

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, and the name of its folder below `/skills`; unique in the agent.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its files: path below the skill's folder → `sha256:<hex>`.
    pub files: BTreeMap<String, String>,
}

/// Most files of a skill.
const MAX_FILES: usize = 500;

const NAME: TextRule = TextRule::length(1, 512).matching(is_folder_name, "a name that a folder can have");
const FILE_HASH: TextRule = TextRule::ANY.matching(is_file_hash, "sha256: and 64 lower-case hexadecimal digits");

/// Reads the skill that stands under `key`.
pub(super) fn read(key: &str, place: Place<'_>) -> Option<Skill> {
    let object = place.object()?;
    let name = object.required("name", |place| {
        let name = place.string(NAME)?;
        if name != key {
            place.custom("The name must equal its key in the map");
        }
        Some(name)
    });
    let description = object.required("description", |place| place.text(TextRule::NON_EMPTY));
    let files = object.required("files", read_files);
    object.finish();
    Some(Skill { name: name?, description: description?.lossy().into_owned(), files: files? })
}

fn read_files(place: Place<'_>) -> Option<BTreeMap<String, String>> {
    let files = place.map_of(0..=MAX_FILES, |path, hash| {
        if !is_relative_path(path) {
            hash.problem(
                ProblemCode::InvalidFormat,
                "Invalid path: expected 1 to 512 characters, relative, with / between names, without \\, control \
                 characters, empty names, . or ..",
            );
        }
        hash.string(FILE_HASH)
    })?;
    if !files.iter().any(|(path, _)| path == "SKILL.md") {
        place.custom("The files of a skill must include SKILL.md");
    }
    Some(files.into_iter().collect())
}

/// The runtime puts a skill's files into a folder of its name.
fn is_folder_name(name: &str) -> bool {
    is_relative_path(name) && !name.contains('/')
}
