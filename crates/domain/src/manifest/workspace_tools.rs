//! The six workspace tools as the model sees them (sandbox-and-definitions a2).

use crate::json::Value;
use crate::tool::WorkspaceTool;

/// How the model is told to work with a workspace.
pub(super) const INSTRUCTIONS: &str = "You have a workspace: a Linux folder, /workspace, that keeps its files between \
    turns. Work in it with the tools bash, read, write, edit, grep and glob. Paths that do not begin with / are below \
    /workspace. Prefer read, grep and glob to cat, grep and find in bash, and edit to rewriting a whole file. A \
    command that exits non-zero is a result to look at, not a fault of the tool.";

/// What the tool does, for the model.
pub fn workspace_tool_description(tool: WorkspaceTool) -> &'static str {
    match tool {
        WorkspaceTool::Bash => {
            "Runs a shell command in /workspace and gives its exit code, standard output and standard error. Long \
             output is cut in the middle. The command is killed after `timeout` seconds. Each call is a new shell: \
             variables and the current folder are not kept, files are."
        }
        WorkspaceTool::Read => {
            "Reads a text file and gives its lines, each with its number and a tab before it. For a long file, read on \
             from `offset` as the last line says."
        }
        WorkspaceTool::Write => {
            "Writes a file whole, making the folders above it. A file that exists is replaced; to change a part of \
             one, use edit."
        }
        WorkspaceTool::Edit => {
            "Replaces `old_string` by `new_string` in a file. `old_string` is literal, white space included, and must \
             stand in the file exactly once unless `replace_all` is set. Read the file first, and leave out the line \
             numbers that read shows."
        }
        WorkspaceTool::Grep => {
            "Searches file contents for a POSIX extended regular expression, below a folder or in one file, and gives \
             lines as `path:line:text`."
        }
        WorkspaceTool::Glob => {
            "Finds files by name and gives their paths. A pattern without / is compared with file names, one with / \
             with the path below `path`; * stays within a name, ** spans folders."
        }
    }
}

/// JSON Schema of the tool's input.
pub fn workspace_tool_schema(tool: WorkspaceTool) -> Value {
    match tool {
        WorkspaceTool::Bash => schema(
            &["command"],
            [
                ("command", non_empty("The command, for a POSIX shell")),
                ("timeout", integer("Seconds until it is killed", 1, Some(600), 120)),
            ],
        ),
        WorkspaceTool::Read => schema(
            &["path"],
            [
                ("path", non_empty("The file")),
                ("offset", integer("The first line to read, counted from 1", 1, None, 1)),
                ("limit", integer("How many lines to read", 1, Some(5_000), 2_000)),
            ],
        ),
        WorkspaceTool::Write => schema(
            &["path", "content"],
            [("path", non_empty("The file")), ("content", string("Everything that the file shall hold"))],
        ),
        WorkspaceTool::Edit => schema(
            &["path", "old_string", "new_string"],
            [
                ("path", non_empty("The file")),
                ("old_string", non_empty("The text to replace")),
                ("new_string", string("What stands in its place")),
                ("replace_all", boolean("Replace every occurrence")),
            ],
        ),
        WorkspaceTool::Grep => schema(
            &["pattern"],
            [
                ("pattern", non_empty("The regular expression")),
                ("path", non_empty("A folder or file; /workspace when left out")),
                ("glob", non_empty("Search only files whose name fits this pattern, such as *.rs")),
                ("ignore_case", boolean("Take upper and lower case as equal")),
                ("max_results", integer("Most lines to give", 1, Some(1_000), 200)),
            ],
        ),
        WorkspaceTool::Glob => schema(
            &["pattern"],
            [
                ("pattern", non_empty("The pattern, such as *.rs or src/**/*.rs")),
                ("path", non_empty("The folder to search; /workspace when left out")),
            ],
        ),
    }
}

/// A strict object schema.
fn schema<const N: usize>(required: &[&str], properties: [(&str, Value); N]) -> Value {
    Value::object([
        ("type", Value::from("object")),
        ("properties", Value::object(properties)),
        ("required", Value::Array(required.iter().copied().map(Value::from).collect())),
        ("additionalProperties", Value::from(false)),
    ])
}

fn property<const N: usize>(kind: &str, description: &str, rest: [(&str, Value); N]) -> Value {
    let first = [("type", Value::from(kind)), ("description", Value::from(description))];
    Value::object(first.into_iter().chain(rest))
}

fn string(description: &str) -> Value {
    property("string", description, [])
}

fn non_empty(description: &str) -> Value {
    property("string", description, [("minLength", Value::from(1))])
}

fn boolean(description: &str) -> Value {
    property("boolean", description, [("default", Value::from(false))])
}

fn integer(description: &str, min: i64, max: Option<i64>, default: i64) -> Value {
    let limits = [("minimum", Some(min)), ("maximum", max), ("default", Some(default))];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name, Value::from(limit?))));
    let first = [("type", Value::from("integer")), ("description", Value::from(description))];
    Value::object(first.into_iter().chain(limits))
}
