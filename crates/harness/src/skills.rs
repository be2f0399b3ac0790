//! The skill tools (sandbox-and-definitions d1): they give the files of the agent's skills to the model.

use nylorun_domain::check::{Place, TextRule, check};
use nylorun_domain::definition_file::FileHash;
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::{AgentManifest, Skill};
use nylorun_domain::tool::{SkillTool, ToolOutcome};
use nylorun_ports::blobs::{BlobKey, Blobs, collect};

/// The file that holds a skill's instructions.
const INSTRUCTIONS: &str = "SKILL.md";
/// How many names a failure lists.
const LISTED: usize = 50;

/// The file of a skill cannot be read now, or is not stored any more.
pub(crate) const UNAVAILABLE: &str = "skill.unavailable";

/// What the model asks for.
struct Wanted {
    name: String,
    /// Only of `read_skill_resource`.
    path: Option<String>,
}

/// Runs a skill tool. It only reads, so that it may run again.
pub(crate) async fn call(blobs: &dyn Blobs, manifest: &AgentManifest, tool: SkillTool, input: &Json) -> ToolOutcome {
    match answer(blobs, manifest, tool, input).await {
        Ok(output) => ToolOutcome::Completed { output },
        Err(failure) => failure,
    }
}

async fn answer(
    blobs: &dyn Blobs,
    manifest: &AgentManifest,
    tool: SkillTool,
    input: &Json,
) -> Result<Json, ToolOutcome> {
    let Wanted { name, path } = read_input(tool, input)?;
    let skill = manifest.skills().find(|skill| skill.name == name).ok_or_else(|| unknown_skill(manifest, &name))?;
    let path = path.as_deref().unwrap_or(INSTRUCTIONS);
    let hash = skill.files.get(path).ok_or_else(|| unknown_file(skill, path))?;
    let text = read_file(blobs, skill, path, hash).await?;
    Ok(match tool {
        SkillTool::Load => loaded(skill, &text),
        SkillTool::ReadResource => Value::from(text).to_json(),
    })
}

fn read_input(tool: SkillTool, input: &Json) -> Result<Wanted, ToolOutcome> {
    let read = |place: Place<'_>| {
        let object = place.object()?;
        let name = object.required_string("name", TextRule::NON_EMPTY);
        let path = match tool {
            SkillTool::Load => Some(None),
            SkillTool::ReadResource => object.required_string("path", TextRule::NON_EMPTY).map(Some),
        };
        object.finish();
        Some(Wanted { name: name?, path: path? })
    };
    check(&input.value(), read).map_err(|problems| {
        let message = format!("The input of {} is not valid:\n{problems}", tool.as_str());
        ToolOutcome::failed("tool.invalid-arguments", message)
    })
}

fn unknown_skill(manifest: &AgentManifest, name: &str) -> ToolOutcome {
    let known = listed(manifest.skills().map(|skill| skill.name.as_str()));
    ToolOutcome::failed("skill.not_found", format!("There is no skill {name:?}. The skills are: {known}"))
}

fn unknown_file(skill: &Skill, path: &str) -> ToolOutcome {
    let known = listed(skill.files.keys().map(String::as_str));
    let message = format!("The skill {} has no file {path:?}. Its files are: {known}", skill.name);
    ToolOutcome::failed("skill.file_not_found", message)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let more = if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
}

async fn read_file(blobs: &dyn Blobs, skill: &Skill, path: &str, hash: &str) -> Result<String, ToolOutcome> {
    let unavailable = |why: &str| {
        ToolOutcome::failed(UNAVAILABLE, format!("The file {path} of the skill {} cannot be read: {why}.", skill.name))
    };
    let file = FileHash::parse(hash).map_err(|_| unavailable("its name is not valid"))?;
    let body = blobs.get(&BlobKey::of_definition_file(&file)).await;
    let bytes = match body {
        Ok(Some(body)) => collect(body).await.map_err(|error| error.to_string()),
        Ok(None) => {
            tracing::error!(file = %file, skill = skill.name, "a definition file is not stored any more");
            return Err(unavailable("it is not stored"));
        }
        Err(error) => Err(error.to_string()),
    };
    let bytes = bytes.map_err(|error| {
        tracing::warn!(file = %file, error, "a definition file could not be read");
        unavailable("its storage does not answer")
    })?;
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("The file {path} of the skill {} is no text in UTF-8.", skill.name);
        ToolOutcome::failed("skill.not_text", message)
    })
}

/// `{name, instructions, files}`
fn loaded(skill: &Skill, text: &str) -> Json {
    let others = skill.files.keys().filter(|path| *path != INSTRUCTIONS).map(|path| Value::from(path.as_str()));
    let members = [
        ("name", Value::from(skill.name.as_str())),
        ("instructions", Value::from(instructions(text))),
        ("files", Value::Array(others.collect())),
    ];
    Value::object(members).to_json()
}

/// The text after its frontmatter, two lines `---` with anything between them, and one blank line. A text without
/// frontmatter is all instructions.
fn instructions(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return text;
    }
    if !lines.by_ref().any(|line| line.trim_end() == "---") {
        return text;
    }
    let rest: usize = lines.clone().map(str::len).sum();
    let skipped = lines.next().filter(|line| line.trim().is_empty()).map_or(0, str::len);
    &text[text.len() - rest + skipped..]
}

#[cfg(test)]
mod tests {
    use super::{instructions, listed};

    #[test]
    fn instructions_are_what_follows_the_frontmatter() {
        for (text, expected) in [
            ("---\nname: pdf\n---\n\nRead it.\n", "Read it.\n"),
            ("\u{feff}---\r\nname: pdf\r\n---\r\n\r\nRead it.", "Read it."),
            ("---\nname: pdf\n---\nRead it.", "Read it."),
            ("---\n---\n\n\nRead it.", "\nRead it."),
            ("---\n---", ""),
            ("---\n---\n", ""),
            ("Read it.\n---\nAll.", "Read it.\n---\nAll."),
            ("---\nnever closed", "---\nnever closed"),
            ("----\na\n---\nb", "----\na\n---\nb"),
            ("", ""),
        ] {
            assert_eq!(instructions(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_failure_lists_some_names() {
        assert_eq!(listed(["a", "b"].into_iter()), "a, b");
        assert!(listed(std::iter::repeat_n("a", 60)).ends_with("a and 10 more"));
    }
}
