//! The report: a table of figures with their targets, the machine and the date.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::bare::Bare;
use crate::{Database, Failure};

/// A report that is being written.
pub(crate) struct Report {
    rows: Vec<[String; 5]>,
}

/// Whether a figure meets its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does.
    Met,
    /// It does not.
    Missed,
    /// There is none.
    NoTarget,
}

impl Verdict {
    /// Met when `figure` is at most `limit`.
    pub(crate) fn at_most(figure: f64, limit: f64) -> Self {
        if figure <= limit { Self::Met } else { Self::Missed }
    }

    /// Met when `figure` is at least `limit`.
    pub(crate) fn at_least(figure: f64, limit: f64) -> Self {
        if figure >= limit { Self::Met } else { Self::Missed }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::NoTarget => "",
        }
    }
}

impl Report {
    /// An empty report.
    pub(crate) fn begin() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a figure, and says it at once.
    pub(crate) fn row(&mut self, database: &str, what: &str, figure: String, target: &str, verdict: Verdict) {
        use std::io::Write as _;
        let row = [database.to_owned(), what.to_owned(), figure, target.to_owned(), verdict.word().to_owned()];
        // A reader that went away does not end the measurement.
        let _ = writeln!(std::io::stdout(), "{}", row.join(" | "));
        self.rows.push(row);
    }

    /// Adds the baselines.
    pub(crate) fn bare(&mut self, database: &Database, bare: &Bare) {
        let figure = format!("p50 {}, p99 {}", ms(bare.commit_p50), ms(bare.commit_p99));
        self.row(database.name(), "baseline: bare commit of one row", figure, "", Verdict::NoTarget);
        let figure = format!("p50 {:.0} µs", bare.statement_p50.as_secs_f64() * 1e6);
        self.row(database.name(), "baseline: bare statement in a transaction", figure, "", Verdict::NoTarget);
    }

    /// Writes the report below `bench/results/`.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let commit = output("git", &["rev-parse", "--short", "HEAD"]);
        let commit = match output("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty() {
            true => commit,
            false => format!("{commit}-changed"),
        };
        let date = output("date", &["-u", "+%Y-%m-%d"]);
        let mut text = format!("# Benchmark of {date}, commit {commit}\n\n");
        writeln!(text, "- processor: {}", processor())?;
        writeln!(text, "- kernel: {}", output("uname", &["-sr"]))?;
        writeln!(text, "- file system of the homes: {}\n", output("stat", &["-f", "-c", "%T", "/tmp"]))?;
        text.push_str("The load generator runs on the same processors as the server (and PostgreSQL).\n\n");
        text.push_str("| database | what | figure | target | |\n|---|---|---|---|---|\n");
        for row in &self.rows {
            writeln!(text, "| {} |", row.join(" | "))?;
        }
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{date}-{commit}.md")), text)?;
        Ok(())
    }
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = info.lines().filter_map(|line| line.strip_prefix("model name\t: ")).collect();
    format!("{} × {}", models.len(), models.first().unwrap_or(&"unknown"))
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// A duration in milliseconds.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// The value below which this share of the times lies. Sorts them.
pub(crate) fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}
