//! POSIX extended regular expressions, as `grep -E` has them, translated to the `regex` crate (decisions,
//! Workspaces).
//!
//! Which lines match is the same in both: POSIX takes the longest match where `regex` takes the first, but a line is
//! chosen by whether there is one. What the crate cannot do (a back-reference) and what POSIX leaves undefined (`\d`)
//! is refused in words.

#[cfg(test)]
mod agreement;
mod bracket;

use regex::bytes::{Regex, RegexBuilder};

/// Largest number in an interval, as in GNU grep.
const MAX_REPEAT: u32 = 32_767;
/// Most memory that a compiled expression may take, in bytes.
const MAX_COMPILED: usize = 16 << 20;

/// How letters are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Sensitive,
    Ignored,
}

/// Compiles a POSIX extended expression, to be matched against one line without its end. The error says what is wrong.
pub(crate) fn compile(pattern: &str, case: Case) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern)?)
        .case_insensitive(case == Case::Ignored)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "Regular expression too big".to_owned(),
            other => format!("The expression is not supported: {other}"),
        })
}

/// The same expression in the syntax of the `regex` crate.
fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator { rest: pattern, out: String::new(), groups: Vec::new(), atom: Atom::None };
    while let Some(c) = translator.next() {
        translator.step(c)?;
    }
    if translator.groups.is_empty() { Ok(translator.out) } else { Err("Unmatched ( or \\(".to_owned()) }
}

/// Translates from left to right, without recursion: an expression may be nested as deep as its author likes.
struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// Where each open group begins in `out`.
    groups: Vec<usize>,
    atom: Atom,
}

/// What a repetition would repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atom {
    /// Nothing: a repetition repeats the empty expression.
    None,
    /// What stands in `out` from here on, and takes a repetition as it is.
    Plain(usize),
    /// What stands from here on, repeated already, or no single character.
    Wrapped(usize),
    /// What stands from here on, repeated by `*` already.
    Starred(usize),
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn step(&mut self, c: char) -> Result<(), String> {
        match c {
            '(' => {
                self.groups.push(self.out.len());
                self.out.push_str("(?:");
                self.atom = Atom::None;
            }
            ')' => match self.groups.pop() {
                Some(start) => {
                    self.out.push(')');
                    self.atom = Atom::Plain(start);
                }
                None => self.literal(')'),
            },
            // A pattern of several lines is several patterns, in grep.
            '|' | '\n' => {
                self.out.push('|');
                self.atom = Atom::None;
            }
            '*' => self.repeat("*"),
            '+' => self.repeat("+"),
            '?' => self.repeat("?"),
            '{' => self.interval()?,
            '^' => self.assertion("^"),
            '$' => self.assertion("$"),
            '.' => self.plain("."),
            '[' => {
                let (set, rest) = bracket::translate(self.rest)?;
                self.rest = rest;
                self.plain(&set);
            }
            '\\' => self.escape()?,
            other => self.literal(other),
        }
        Ok(())
    }

    fn plain(&mut self, text: &str) {
        self.atom = Atom::Plain(self.out.len());
        self.out.push_str(text);
    }

    fn literal(&mut self, c: char) {
        self.plain(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    fn assertion(&mut self, text: &str) {
        self.atom = Atom::Wrapped(self.out.len());
        self.out.push_str(text);
    }

    fn repeat(&mut self, operator: &str) {
        let start = match self.atom {
            // `a**` is `a*`: so a row of stars does not nest.
            Atom::Starred(_) if operator == "*" => return,
            Atom::Plain(start) => start,
            Atom::Starred(start) | Atom::Wrapped(start) => {
                self.out.insert_str(start, "(?:");
                self.out.push(')');
                start
            }
            Atom::None => {
                let start = self.out.len();
                self.out.push_str("(?:)");
                start
            }
        };
        self.out.push_str(operator);
        self.atom = if operator == "*" { Atom::Starred(start) } else { Atom::Wrapped(start) };
    }

    /// `{m}`, `{m,}`, `{,n}`, `{m,n}`; anything else after `{` makes it an ordinary character.
    fn interval(&mut self) -> Result<(), String> {
        let Some((inside, rest)) = self.rest.split_once('}') else {
            self.literal('{');
            return Ok(());
        };
        let (min, max) = inside.split_once(',').unwrap_or((inside, inside));
        let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if inside.is_empty() || !numeric(min) || !numeric(max) {
            self.literal('{');
            return Ok(());
        }
        let number = |text: &str| text.parse().ok().filter(|number| *number <= MAX_REPEAT);
        let too_big = || "Regular expression too big".to_owned();
        let min = if min.is_empty() { 0 } else { number(min).ok_or_else(too_big)? };
        let max = if max.is_empty() { None } else { Some(number(max).ok_or_else(too_big)?) };
        self.rest = rest;
        match max {
            Some(max) if max < min => return Err("Invalid content of \\{\\}".to_owned()),
            Some(max) => self.repeat(&format!("{{{min},{max}}}")),
            None => self.repeat(&format!("{{{min},}}")),
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else { return Err("Trailing backslash".to_owned()) };
        match c {
            '1'..='9' => {
                return Err(format!("Back-references (\\{c}) are not supported; write the repeated text out"));
            }
            'w' => self.plain(r"[_\p{Alphabetic}\p{N}]"),
            'W' => self.plain(r"[^_\p{Alphabetic}\p{N}]"),
            's' => self.plain(bracket::SPACE),
            'S' => self.plain(bracket::NOT_SPACE),
            'b' => self.assertion(r"\b"),
            'B' => self.assertion(r"\B"),
            '<' => self.assertion(r"\b{start}"),
            '>' => self.assertion(r"\b{end}"),
            '`' => self.assertion(r"\A"),
            '\'' => self.assertion(r"\z"),
            // Not POSIX, but there is only one thing that they can mean.
            'd' => self.plain("[0-9]"),
            'D' => self.plain("[^0-9]"),
            't' => self.literal('\t'),
            letter if letter.is_ascii_alphanumeric() => {
                return Err(format!("\\{letter} is not a POSIX extended expression; use a bracket expression instead"));
            }
            other => self.literal(other),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_refused_in_words() {
        for (pattern, message) in [
            (r"(a)\1", "Back-references (\\1) are not supported; write the repeated text out"),
            (r"\p{L}", "\\p is not a POSIX extended expression; use a bracket expression instead"),
            ("(a", "Unmatched ( or \\("),
            ("[a", "Unmatched [, [^, [:, [., or [="),
            ("a\\", "Trailing backslash"),
            ("[[:foo:]]", "Invalid character class name"),
            ("[:alpha:]", "Character class syntax is [[:space:]], not [:space:]"),
            ("[z-a]", "Invalid range end"),
            ("a{32768}", "Regular expression too big"),
            ("(a{1000}){1000}", "Regular expression too big"),
            ("a{3,2}", "Invalid content of \\{\\}"),
        ] {
            assert_eq!(compile(pattern, Case::Sensitive).map(drop), Err(message.to_owned()), "{pattern}");
        }
    }

    #[test]
    fn letters_of_either_case_match_when_case_is_ignored() {
        let regex = compile("[a-c]É", Case::Ignored).unwrap();
        assert!(regex.is_match("Bé".as_bytes()));
        assert!(!compile("[a-c]É", Case::Sensitive).unwrap().is_match("Bé".as_bytes()));
    }

    #[test]
    fn perl_syntax_does_not_leak_in() {
        for (pattern, line, expected) in [
            ("(?i)A", "a", false),
            ("a*?b", "b", true),
            ("a+?b", "ab", true),
            ("[a&&b]", "&", true),
            ("[a--b]", "-", false),
            ("[[a]", "[", true),
            ("#x y", "#x y", true),
            ("[~~]", "~", true),
            (r"[\w]", "w", true),
            (r"[\w]", "x", false),
        ] {
            let matched = compile(pattern, Case::Sensitive).is_ok_and(|regex| regex.is_match(line.as_bytes()));
            assert_eq!(matched, expected, "{pattern} on {line}");
        }
    }

    #[test]
    fn deep_and_long_expressions_end_in_an_answer() {
        for pattern in ["(".repeat(100_000) + &")".repeat(100_000), "a".to_owned() + &"+".repeat(10_000)] {
            assert!(compile(&pattern, Case::Sensitive).is_err());
        }
        assert!(compile(&("a".to_owned() + &"*".repeat(100_000)), Case::Sensitive).is_ok());
    }
}
