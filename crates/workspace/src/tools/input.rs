//! Inputs of the six tools, checked (sandbox-and-definitions a2).

use std::time::Duration;

use nylorun_domain::check::{Object, Place, TextRule, check};
use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::WORKSPACE_DIR;

/// A tool with its checked input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolCall {
    Bash(Bash),
    File(FileCall),
}

/// `bash`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bash {
    pub(crate) command: String,
    pub(crate) time_limit: Duration,
}

/// The tools that work on files and start no shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileCall {
    Read(Read),
    Write(Write),
    Edit(Edit),
    Grep(Grep),
    Glob(Glob),
}

/// `read`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) path: String,
    /// The first line, from 1.
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

/// `write`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// `edit`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) replace_all: bool,
}

/// `grep`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grep {
    pub(crate) pattern: String,
    pub(crate) path: String,
    pub(crate) glob: Option<String>,
    pub(crate) ignore_case: bool,
    pub(crate) max_results: usize,
}

/// `glob`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    pub(crate) pattern: String,
    pub(crate) path: String,
}

impl FileCall {
    /// The path that the call names, for the record.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Read(read) => &read.path,
            Self::Write(write) => &write.path,
            Self::Edit(edit) => &edit.path,
            Self::Grep(grep) => &grep.path,
            Self::Glob(glob) => &glob.path,
        }
    }
}

/// Checks the input of `tool`. An input with problems is the outcome `tool.invalid-arguments`, which names them all.
pub(crate) fn check_input(tool: WorkspaceTool, input: &Json) -> Result<ToolCall, ToolOutcome> {
    let read = match tool {
        WorkspaceTool::Bash => bash,
        WorkspaceTool::Read => read,
        WorkspaceTool::Write => write,
        WorkspaceTool::Edit => edit,
        WorkspaceTool::Grep => grep,
        WorkspaceTool::Glob => glob,
    };
    check(&input.value(), read).map_err(|problems| {
        let message = format!("The input of {} is not valid:\n{problems}", tool.as_str());
        ToolOutcome::failed("tool.invalid-arguments", message)
    })
}

fn bash(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let command = non_empty(&object, "command");
    let seconds = object.optional("timeout", |place| place.integer(1..=600_u32)).unwrap_or(120);
    object.finish();
    Some(ToolCall::Bash(Bash { command: command?, time_limit: Duration::from_secs(seconds.into()) }))
}

fn read(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let path = path(&object);
    let offset = object.optional("offset", |place| place.integer(1..=i64::MAX)).unwrap_or(1);
    let limit = object.optional("limit", |place| place.integer(1..=5000_i64)).unwrap_or(2000);
    object.finish();
    Some(ToolCall::File(FileCall::Read(Read {
        path: path?,
        offset: offset.unsigned_abs(),
        limit: limit.unsigned_abs(),
    })))
}

fn write(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let path = path(&object);
    let content = any_text(&object, "content");
    object.finish();
    Some(ToolCall::File(FileCall::Write(Write { path: path?, content: content? })))
}

fn edit(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let path = path(&object);
    let old = non_empty(&object, "old_string");
    let new = any_text(&object, "new_string");
    let replace_all = object.optional("replace_all", Place::boolean).unwrap_or(false);
    object.finish();
    Some(ToolCall::File(FileCall::Edit(Edit { path: path?, old: old?, new: new?, replace_all })))
}

fn grep(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let pattern = non_empty(&object, "pattern");
    let path = optional_path(&object);
    let glob = object.optional("glob", |place| place.text(TextRule::NON_EMPTY)).map(|text| text.lossy().into_owned());
    let ignore_case = object.optional("ignore_case", Place::boolean).unwrap_or(false);
    let max_results = object.optional("max_results", |place| place.integer(1..=1000_u32)).unwrap_or(200);
    object.finish();
    let max_results = usize::try_from(max_results).unwrap_or(usize::MAX);
    Some(ToolCall::File(FileCall::Grep(Grep { pattern: pattern?, path, glob, ignore_case, max_results })))
}

fn glob(place: Place<'_>) -> Option<ToolCall> {
    let object = place.object()?;
    let pattern = non_empty(&object, "pattern");
    let path = optional_path(&object);
    object.finish();
    Some(ToolCall::File(FileCall::Glob(Glob { pattern: pattern?, path })))
}

// Lone surrogates become U+FFFD towards a shell (decisions, Text and JSON): hence `lossy`.

fn non_empty(object: &Object<'_>, name: &str) -> Option<String> {
    object.required(name, |place| place.text(TextRule::NON_EMPTY)).map(|text| text.lossy().into_owned())
}

fn any_text(object: &Object<'_>, name: &str) -> Option<String> {
    object.required(name, |place| place.text(TextRule::ANY)).map(|text| text.lossy().into_owned())
}

fn path(object: &Object<'_>) -> Option<String> {
    let path = object.required("path", checked_path)?;
    Some(path)
}

fn optional_path(object: &Object<'_>) -> String {
    object.optional("path", checked_path).unwrap_or_else(|| WORKSPACE_DIR.to_owned())
}

fn checked_path(place: Place<'_>) -> Option<String> {
    let text = place.text(TextRule::NON_EMPTY)?;
    let path = text.lossy();
    if path.contains('\0') {
        place.custom("Invalid path: must not hold NUL");
        return None;
    }
    Some(path.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(tool: WorkspaceTool, input: &str) -> String {
        match check_input(tool, &Json::parse(input).unwrap()) {
            Err(ToolOutcome::Failed { code, message }) => {
                assert_eq!(code, "tool.invalid-arguments");
                message
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fills_in_what_is_left_out() {
        let input = Json::parse(r#"{"pattern":"a"}"#).unwrap();
        let expected = Grep {
            pattern: "a".to_owned(),
            path: "/workspace".to_owned(),
            glob: None,
            ignore_case: false,
            max_results: 200,
        };
        assert_eq!(check_input(WorkspaceTool::Grep, &input), Ok(ToolCall::File(FileCall::Grep(expected))));
        let input = Json::parse(r#"{"command":"ls"}"#).unwrap();
        let expected = Bash { command: "ls".to_owned(), time_limit: Duration::from_secs(120) };
        assert_eq!(check_input(WorkspaceTool::Bash, &input), Ok(ToolCall::Bash(expected)));
        let input = Json::parse(r#"{"path":"a\ud800b"}"#).unwrap();
        let expected = Read { path: "a\u{fffd}b".to_owned(), offset: 1, limit: 2000 };
        assert_eq!(check_input(WorkspaceTool::Read, &input), Ok(ToolCall::File(FileCall::Read(expected))));
    }

    #[test]
    fn reports_every_problem_with_its_path() {
        assert_eq!(
            problems_of(WorkspaceTool::Read, r#"{"path":"","offset":0,"limit":5001,"extra":1}"#),
            "The input of read is not valid:\n\
             path: Too small: expected string to have >=1 characters\n\
             offset: Too small: expected number to be >=1\n\
             limit: Too big: expected number to be <=5000\n\
             Unrecognized key: \"extra\""
        );
        assert_eq!(
            problems_of(WorkspaceTool::Bash, r#"{"timeout":1.5}"#),
            "The input of bash is not valid:\n\
             command: Invalid input: required, received undefined\n\
             timeout: Invalid input: expected int, received number"
        );
        assert_eq!(
            problems_of(WorkspaceTool::Edit, r#"{"path":"a\u0000","old_string":"","new_string":1,"replace_all":"x"}"#),
            "The input of edit is not valid:\n\
             path: Invalid path: must not hold NUL\n\
             old_string: Too small: expected string to have >=1 characters\n\
             new_string: Invalid input: expected string, received number\n\
             replace_all: Invalid input: expected boolean, received string"
        );
        assert_eq!(
            problems_of(WorkspaceTool::Glob, "[]"),
            "The input of glob is not valid:\nInvalid input: expected object, received array"
        );
    }
}
