//! What a command says when it fails: what, and what to do about it.

use std::io::{self, Write};
use std::process::ExitCode;

use nylorun_client::Error;

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
    fn refused(refusal: &nylorun_client::Refusal) -> Self {
        let problems = refusal.problems();
        if !problems.is_empty() {
            let count = problems.len();
            let what = format!("the server found {count} problem{}", if count == 1 { "" } else { "s" });
            let lines = problems.iter().map(|problem| format!("{}: {}", problem.path_text(), problem.message));
            return Self::new(what).lines(lines.collect());
        }
        let failure = Self::new(refusal.to_string());
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
    fn a_reader_that_went_away_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit.number(), printed(&failure)), (0, String::new()));
    }
}
