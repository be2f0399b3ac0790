//! Sizes: short files, functions and crates can be read in one go. What is over its budget needs an entry in the
//! ratchet, whose number may only go down.

use std::collections::BTreeMap;

use super::Finding;
use super::ratchet::{Entry, FILE};
use super::rust::{Place, Source};

/// Lines of a file, tests left out.
const FILE_LINES: usize = 400;
/// Lines of a file that no entry of the ratchet excuses.
const FILE_LINES_HARD: usize = 700;
/// Lines of a function that ships.
const FUNCTION_LINES: usize = 70;
/// Lines of all files of a crate, tests left out.
const CRATE_LINES: usize = 12_000;
/// Characters of a line, in tests too.
const LINE_CHARACTERS: usize = 120;

/// Something measured.
struct Measure {
    subject: String,
    lines: usize,
    budget: usize,
}

/// Findings of all budgets.
pub(super) fn check(sources: &[Source], ratchet: &[Entry]) -> Vec<Finding> {
    let measures = measure(sources);
    let mut findings: Vec<Finding> = sources.iter().flat_map(long_lines).collect();
    findings.extend(sources.iter().filter(|source| source.shipped_lines > FILE_LINES_HARD).map(|source| {
        let text =
            format!("{} lines, and no file may have more than {FILE_LINES_HARD}: split it", source.shipped_lines);
        Finding::new(&source.path, text)
    }));
    findings.extend(over_budget(&measures, ratchet));
    findings.extend(stale_entries(&measures, ratchet));
    findings
}

fn measure(sources: &[Source]) -> Vec<Measure> {
    let mut measures = Vec::new();
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        measures.push(Measure { subject: source.path.clone(), lines: source.shipped_lines, budget: FILE_LINES });
        *crates.entry(crate_folder(&source.path)).or_default() += source.shipped_lines;
        for function in source.functions.iter().filter(|function| function.place == Place::Shipped) {
            let subject = format!("{}::{}", source.path, function.name);
            measures.push(Measure { subject, lines: function.lines, budget: FUNCTION_LINES });
        }
    }
    let crates = crates.into_iter();
    measures.extend(crates.map(|(folder, lines)| Measure { subject: folder.into(), lines, budget: CRATE_LINES }));
    measures
}

/// The folder that holds the crate's `src` or `tests`.
fn crate_folder(path: &str) -> &str {
    let cut = path.find("/src/").or_else(|| path.find("/tests/")).unwrap_or(path.len());
    &path[..cut]
}

fn long_lines(source: &Source) -> Vec<Finding> {
    let long = source.text.lines().enumerate().filter(|(_, line)| line.chars().count() > LINE_CHARACTERS);
    long.map(|(index, _)| Finding::at(&source.path, index + 1, format!("longer than {LINE_CHARACTERS} characters")))
        .collect()
}

fn over_budget(measures: &[Measure], ratchet: &[Entry]) -> Vec<Finding> {
    let over = measures.iter().filter(|measure| measure.lines > measure.budget);
    let unexcused = over.filter(|measure| !ratchet.iter().any(|entry| entry.subject == measure.subject));
    unexcused
        .map(|measure| {
            let text = format!("{} lines, and the budget is {}: split it", measure.lines, measure.budget);
            Finding::new(&measure.subject, text)
        })
        .collect()
}

/// Entries that excuse more than there is, less than there is, or nothing at all.
fn stale_entries(measures: &[Measure], ratchet: &[Entry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in ratchet {
        let largest = measures.iter().filter(|measure| measure.subject == entry.subject).max_by_key(|m| m.lines);
        let text = match largest {
            None => "is not in the repository: remove the entry".into(),
            Some(measure) if measure.lines <= measure.budget => "is within its budget: remove the entry".into(),
            Some(measure) if measure.lines < entry.lines => format!("has shrunk: lower the entry to {}", measure.lines),
            Some(measure) if measure.lines > entry.lines => {
                format!("has grown from {} to {} lines, and may only shrink", entry.lines, measure.lines)
            }
            Some(_) => continue,
        };
        findings.push(Finding::at(FILE, entry.line, format!("{} {text}", entry.subject)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::ratchet::Entry;
    use crate::tidy::rust::Source;

    const PATH: &str = "crates/a/src/b.rs";

    fn findings(text: &str, ratchet: &[(&str, usize)]) -> Vec<String> {
        let source = Source::read(PATH, text).unwrap();
        let entries: Vec<Entry> = ratchet
            .iter()
            .enumerate()
            .map(|(index, (subject, lines))| Entry { line: index + 1, subject: (*subject).into(), lines: *lines })
            .collect();
        check(&[source], &entries).iter().map(ToString::to_string).collect()
    }

    fn lines(count: usize) -> String {
        "const A: u8 = 1;\n".repeat(count)
    }

    #[test]
    fn a_file_over_its_budget_is_found_and_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(500));
        assert_eq!(findings(&format!("{}{tests}", lines(400)), &[]), Vec::<String>::new());
        assert_eq!(findings(&lines(401), &[]), [format!("{PATH}: 401 lines, and the budget is 400: split it")]);
    }

    #[test]
    fn no_entry_excuses_the_hard_limit() {
        let expected = [format!("{PATH}: 701 lines, and no file may have more than 700: split it")];
        assert_eq!(findings(&lines(701), &[(PATH, 701)]), expected);
    }

    #[test]
    fn a_long_function_is_found() {
        let text = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(69));
        assert_eq!(findings(&text, &[]), [format!("{PATH}::f: 71 lines, and the budget is 70: split it")]);
        assert_eq!(findings(&text, &[(&format!("{PATH}::f"), 71)]), Vec::<String>::new());
    }

    #[test]
    fn a_crate_over_its_budget_is_found() {
        let files = (0..31).map(|n| Source::read(&format!("crates/a/src/f{n}.rs"), &lines(390)).unwrap());
        let found = check(&files.collect::<Vec<_>>(), &[]);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["crates/a: 12090 lines, and the budget is 12000: split it"]);
    }

    #[test]
    fn an_entry_may_only_shrink_and_must_be_needed() {
        let at = |text: &str| [format!("xtask/ratchet.txt:1: {PATH} {text}")];
        let grown = at("has grown from 401 to 402 lines, and may only shrink");
        assert_eq!(findings(&lines(402), &[(PATH, 401)]), grown);
        assert_eq!(findings(&lines(402), &[(PATH, 410)]), at("has shrunk: lower the entry to 402"));
        assert_eq!(findings(&lines(400), &[(PATH, 410)]), at("is within its budget: remove the entry"));
        let gone = ["xtask/ratchet.txt:1: crates/a/src/gone.rs is not in the repository: remove the entry"];
        assert_eq!(findings(&lines(1), &[("crates/a/src/gone.rs", 410)]), gone);
    }

    #[test]
    fn a_long_line_is_found() {
        let text = format!("//! {}\n", "x".repeat(117));
        assert_eq!(findings(&text, &[]), [format!("{PATH}:1: longer than 120 characters")]);
    }
}
