//! Tools and what they give.

use crate::json::{Json, Value, utf16_prefix};
use crate::model::words;

/// What became of a tool call, as a definite fact. An answer that was lost is not an outcome: it makes the effect
/// uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It ran. A command that exited non-zero also ran.
    Completed {
        /// What it gave.
        output: Json,
    },
    /// It refused its input, or could not run.
    Failed {
        /// A dotted word: `sandbox.not_found`.
        code: String,
        /// What is wrong and what would help.
        message: String,
    },
}

impl ToolOutcome {
    /// A failure.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::Failed { code: code.to_owned(), message: message.into() }
    }
}

/// How much of a call's subject is kept, in UTF-16 units (sandbox-and-definitions a4).
const MAX_SUBJECT: usize = 500;

words! {
    /// The six built-in tools of a workspace (sandbox-and-definitions a2).
    WorkspaceTool {
        /// Runs a shell command.
        Bash = "bash",
        /// Reads a text file.
        Read = "read",
        /// Writes a file whole.
        Write = "write",
        /// Replaces text in a file.
        Edit = "edit",
        /// Searches file contents.
        Grep = "grep",
        /// Finds files by name.
        Glob = "glob",
    }
}

words! {
    /// The tools by which a model reads the skills of its agent (sandbox-and-definitions d1).
    SkillTool {
        /// Gives a skill's instructions.
        Load = "load_skill",
        /// Gives another file of a skill.
        ReadResource = "read_skill_resource",
    }
}

impl WorkspaceTool {
    /// Whether the tool only reads, so that it may run again when its answer was lost (decisions, What may run
    /// again).
    pub fn is_read_only(self) -> bool {
        match self {
            Self::Read | Self::Grep | Self::Glob => true,
            Self::Bash | Self::Write | Self::Edit => false,
        }
    }

    /// What a call of this tool is about, as events show it: of `bash` the beginning of its command, of the others
    /// their path, as the caller gave it. `None` when the input names none.
    pub fn subject(self, input: &Json) -> Option<String> {
        let value = input.value();
        let subject = value.get(self.subject_name()).and_then(Value::as_text)?;
        Some(utf16_prefix(&subject.lossy(), MAX_SUBJECT).to_owned())
    }

    /// Under which name inputs and events hold the subject of a call.
    pub fn subject_name(self) -> &'static str {
        match self {
            Self::Bash => "command",
            Self::Read | Self::Write | Self::Edit | Self::Grep | Self::Glob => "path",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WorkspaceTool;
    use crate::json::Json;

    #[test]
    fn a_call_is_named_by_its_command_or_its_path() {
        let subject = |tool: WorkspaceTool, input: &str| tool.subject(&Json::from_trusted(input));
        assert_eq!(subject(WorkspaceTool::Bash, r#"{"command":"ls","path":"a"}"#).as_deref(), Some("ls"));
        assert_eq!(subject(WorkspaceTool::Write, r#"{"path":"a","content":"ls"}"#).as_deref(), Some("a"));
        assert_eq!(subject(WorkspaceTool::Bash, r#"{"command":7}"#), None);
        let long = format!(r#"{{"command":"{}😀"}}"#, "x".repeat(499));
        assert_eq!(subject(WorkspaceTool::Bash, &long), Some("x".repeat(499)), "a pair is not split");
    }
}
