//! The targets, and what several of them need.

mod harness;
mod json;
mod providers;
mod streams;
mod texts;
mod tokens;
mod tools;

/// One reader of what others write.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: the folder of its corpus, and the file of libFuzzer's.
    pub name: &'static str,
    /// What its input is.
    pub about: &'static str,
    /// Panics when a property does not hold for this input.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, run }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("ids", "a text, against every grammar of ids and names", texts::ids),
    target("cursors", "lines: a session's id, an agent's, a cursor, what a cursor holds", texts::cursors),
    target("json", "a JSON document: printed and canonical forms", json::json),
    target("manifest", "an agent's manifest", json::manifest),
    target("bodies", "the body of a command or of the opening of a session", json::bodies),
    target("record", "an event as the record holds it: inputs, edits, entries, outcomes", json::record),
    target(
        "frames",
        "an event stream as a client reads it, and the document of an event to be framed",
        streams::frames,
    ),
    target("harness", "a frame of the Harness API, in either direction", harness::harness),
    target("providers", "the stream of a model's answer, in any of four protocols", providers::providers),
    target("tools", "lines: a content type, a JSON Schema; then the body of a tool's answer", tools::tools),
    target("tokens", "lines: a token, an identity file; then a key set", tokens::tokens),
];

/// Runs the target of this name.
///
/// # Panics
/// There is none, or a property does not hold.
pub fn run(name: &str, input: &[u8]) {
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(input),
        None => panic!("no target is named {name}"),
    }
}

/// Ways to cut an input: byte by byte, in short pieces, and once, at a place that follows from the input.
fn cuts(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let sum = input.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let (before, after) = input.split_at(sum.checked_rem(input.len()).unwrap_or(0));
    vec![input.chunks(1).collect(), input.chunks(3).collect(), vec![before, after]]
}

/// The first lines of an input, and what follows them.
fn lines<const N: usize>(input: &[u8]) -> ([&[u8]; N], &[u8]) {
    let mut parts = input.splitn(N + 1, |byte| *byte == b'\n');
    let lines = std::array::from_fn(|_| parts.next().unwrap_or_default());
    (lines, parts.next().unwrap_or_default())
}
