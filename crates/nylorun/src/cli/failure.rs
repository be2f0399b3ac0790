//! What a command says when it fails: what, and what to do about it.

use std::io::{self, Write};
use std::process::ExitCode;

use nylorun_client::Error;
use serde_json::Value;

use super::show::plain;
use super::term::{Style, Tone, visible};

/// Exit codes (overview, Commands and files).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It ended, and was not wanted to end here: nothing to say. A reader of our output went away, say.
    Quiet,
    /// 1: it failed.
    Failed,
    /// 2: the command line is wrong.
    Usage,
    /// 3: nothing runs there.
    NotRunning,
}

impl Exit {
    /// The number.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Quiet => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotRunning => 3,
        }
    }

    /// For `main`.
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// A command that failed.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong, with the value that is wrong.
    what: String,
    /// More of it, a line each.
    lines: Vec<String>,
    /// What to do.
    remedy: Option<String>,
}

impl Failure {
    /// A failure with exit code 1.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), lines: Vec::new(), remedy: None }
    }

    /// A command line that cannot be obeyed: exit code 2.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(what) }
    }

    /// Nothing runs there: exit code 3.
    pub(crate) fn not_running(what: impl Into<String>) -> Self {
        Self { exit: Exit::NotRunning, ..Self::new(what) }
    }

    /// The failure has been told already; only the exit code is left to give.
    pub(crate) fn told() -> Self {
        Self::new("")
    }

    /// The same with what to do.
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// What to do, if that is known.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The same with details, a line each.
    pub(crate) fn lines(self, lines: Vec<String>) -> Self {
        Self { lines, ..self }
    }

    /// Writes it for a person.
    pub(crate) fn print(&self, out: &mut dyn Write, style: &Style) {
        if self.exit == Exit::Quiet || self.what.is_empty() {
            return;
        }
        let mut text = format!("{} {}\n", style.paint(Tone::Bad, "error:"), visible(&self.what));
        for line in &self.lines {
            text.push_str(&format!("  {}\n", visible(line)));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("{} {}\n", style.paint(Tone::Accent, "  try:"), visible(remedy)));
        }
        // Nobody can be told when standard error is gone.
        let _ = out.write_all(text.as_bytes());
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Quiet, ..Self::new("") };
        }
        Self::new(format!("cannot write the output: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Unreachable { .. } => Self::not_running(error.to_string())
                .remedy("start it with `nylorun start`, or say where it runs with --url"),
            Error::Incompatible { .. } => {
                Self::new(error.to_string()).remedy("use the `nylorun` of the server's own version")
            }
            Error::Refused(refusal) => Self::refused(refusal),
            Error::InvalidUrl { .. } | Error::InvalidId(_) | Error::InvalidKey(_) => Self::usage(error.to_string()),
            Error::Malformed { .. } | Error::FrameTooLarge(_) | Error::Setup(_) => Self::new(error.to_string()),
        }
    }
}

impl Failure {
    /// A document with these problems, each with where it is: `the server found 2 problems`.
    pub(crate) fn problems(who: &str, problems: Vec<(String, String)>) -> Self {
        let plural = if problems.len() == 1 { "" } else { "s" };
        let what = format!("{who} {} problem{plural}", problems.len());
        Self::new(what).lines(problems.into_iter().map(|(path, message)| format!("{path}: {message}")).collect())
    }

    fn refused(refusal: &nylorun_client::Refusal) -> Self {
        let problems = refusal.problems();
        if !problems.is_empty() {
            let problems = problems.into_iter().map(|problem| (problem.path_text(), problem.message));
            return Self::problems("the server found", problems.collect());
        }
        let failure = Self::new(refusal.to_string()).lines(refusal.details.as_ref().map(details).unwrap_or_default());
        let remedy = match (refusal.code.as_str(), &refusal.active_turn_id) {
            ("credential_required" | "credential_invalid", _) => {
                "give a key of this server: NYLORUN_SERVER_KEY or --application-key-file FILE for agents and sessions, \
                 NYLORUN_MANAGEMENT_KEY or --management-key-file FILE for the tenant's settings"
            }
            ("key_role_mismatch", _) => "use a key of the other role: --application-key-file or --management-key-file",
            (_, Some(_)) => "wait until the turn ends, or end it with `nylorun session cancel ID`",
            _ => return failure,
        };
        failure.remedy(remedy)
    }
}

/// Most items of one list that are shown.
const SHOWN_ITEMS: usize = 20;

/// The facts of a refusal, a line each: `name: value`, and the items of a list one by one.
fn details(details: &Value) -> Vec<String> {
    let Value::Object(members) = details else { return vec![plain(details)] };
    let mut lines = Vec::new();
    for (name, value) in members {
        match value {
            Value::Array(items) if items.is_empty() => lines.push(format!("{name}: none")),
            Value::Array(items) => {
                lines.extend(items.iter().take(SHOWN_ITEMS).map(|item| format!("{name}: {}", plain(item))));
                let more = items.len().saturating_sub(SHOWN_ITEMS);
                if more > 0 {
                    lines.push(format!("{name}: and {more} more"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                lines.push(format!("{name}: {}", plain(value)));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use nylorun_client::Refusal;
    use serde_json::json;

    use super::*;

    fn refusal(status: u16, code: &str, message: &str) -> Refusal {
        let (code, message) = (code.to_owned(), message.to_owned());
        let (details, active_turn_id, request_id, retry_after) = (None, None, None, None);
        Refusal { status, code, message, details, active_turn_id, request_id, retry_after }
    }

    fn printed(failure: &Failure) -> String {
        let mut out = Vec::new();
        failure.print(&mut out, &Style::plain());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn problems_stand_one_a_line_with_their_path() {
        let message = json!([
            {"code": "custom", "path": ["manifest", "capabilities", 0, "id"], "message": "used twice"},
            {"code": "custom", "path": [], "message": "too\u{1b}[2J deep"},
        ]);
        let error = Error::Refused(Box::new(refusal(400, "request_rejected", &message.to_string())));
        let failure = Failure::from(error);
        assert_eq!(failure.exit.number(), 1);
        assert_eq!(
            printed(&failure),
            "error: the server found 2 problems\n  manifest.capabilities[0].id: used twice\n  (root): too␛[2J deep\n"
        );
    }

    #[test]
    fn nothing_listening_is_exit_code_3_with_the_command_that_starts_it() {
        let error = Error::Unreachable { url: "http://127.0.0.1:4000/health".into(), cause: "refused".into() };
        let failure = Failure::from(error);
        assert_eq!(failure.exit.number(), 3);
        assert!(printed(&failure).contains("try: start it with `nylorun start`"), "{}", printed(&failure));
    }

    #[test]
    fn a_busy_session_says_how_to_end_its_turn() {
        let busy = Refusal { active_turn_id: Some("t".into()), ..refusal(409, "request_rejected", "busy") };
        let text = printed(&Failure::from(Error::Refused(Box::new(busy))));
        assert_eq!(
            text,
            "error: busy (request_rejected, status 409)\n  \
             try: wait until the turn ends, or end it with `nylorun session cancel ID`\n"
        );
    }

    #[test]
    fn the_facts_of_a_refusal_stand_one_a_line() {
        let many: Vec<String> = (0..22).map(|at| format!("sha256:{at}")).collect();
        let facts =
            json!({"missing": ["sha256:aa", "sha256:bb"], "limit": 3, "scopes": [], "many": many, "why": {"a": 1}});
        let refused = Refusal { details: Some(facts), ..refusal(400, "definition_files_missing", "upload them") };
        let text = printed(&Failure::from(Error::Refused(Box::new(refused))));
        let lines: Vec<&str> = text.lines().collect();
        let first = [
            "error: upload them (definition_files_missing, status 400)",
            "  missing: sha256:aa",
            "  missing: sha256:bb",
        ];
        assert_eq!(lines[..3], first);
        assert_eq!(lines[3..5], ["  limit: 3", "  scopes: none"]);
        assert_eq!(lines[24..], ["  many: sha256:19", "  many: and 2 more", r#"  why: {"a":1}"#]);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit.number(), printed(&failure)), (0, String::new()));
    }
}
