//! A Rust file as a flat list of tokens with their lines: enough to count functions and to find words, without
//! strings or comments being mistaken for code.

use std::str::FromStr;

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

use super::Finding;
use super::tree::Tree;

/// Whether a token ships or only tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Compiled into what users run.
    Shipped,
    /// Under `#[cfg(test)]`, in a `tests` folder, or in a file `tests.rs`.
    Test,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or keyword.
    Word,
    /// A literal, with its quotes.
    Literal,
    /// One character of punctuation, or a delimiter.
    Mark,
}

/// One token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// Its line, from 1.
    pub(super) line: usize,
    /// What it is.
    pub(super) kind: Kind,
    /// Its text.
    pub(super) text: String,
    /// Whether it ships.
    pub(super) place: Place,
}

/// One function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// The line of its `fn`, from 1.
    pub(super) line: usize,
    /// Lines from its `fn` to its closing brace.
    pub(super) lines: usize,
    /// Whether it ships.
    pub(super) place: Place,
}

/// One Rust file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// From the repository's root.
    pub(super) path: String,
    /// The whole text.
    pub(super) text: String,
    /// All tokens but documentation.
    pub(super) tokens: Vec<Token>,
    /// All functions that have a body.
    pub(super) functions: Vec<Function>,
    /// Lines that ship: all lines but those of test items.
    pub(super) shipped_lines: usize,
}

/// All Rust files, and a finding for each that cannot be read as Rust.
pub(super) fn read_all(tree: &Tree) -> (Vec<Source>, Vec<Finding>) {
    let mut sources = Vec::new();
    let mut findings = Vec::new();
    for file in tree.with_extension("rs") {
        match Source::read(&file.path, &file.text) {
            Ok(source) => sources.push(source),
            Err(error) => findings.push(Finding::new(&file.path, format!("is not valid Rust: {error}"))),
        }
    }
    (sources, findings)
}

impl Source {
    /// Reads one file.
    pub(super) fn read(path: &str, text: &str) -> Result<Self, LexError> {
        let mut tokens = Vec::new();
        flatten(TokenStream::from_str(text)?, &mut tokens);
        let total = text.lines().count();
        let shipped_lines = if is_test_file(path) {
            tokens.iter_mut().for_each(|token| token.place = Place::Test);
            0
        } else {
            total - mark_tests(&mut tokens)
        };
        let functions = find_functions(&tokens);
        Ok(Self { path: path.into(), text: text.into(), tokens, functions, shipped_lines })
    }

    /// The first token of each place where the tokens read as `words`, one token each.
    pub(super) fn places_of(&self, words: &[&str]) -> Vec<&Token> {
        let reads = |window: &&[Token]| window.iter().zip(words).all(|(token, word)| token.text == *word);
        self.tokens.windows(words.len()).filter(reads).map(|window| &window[0]).collect()
    }
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|part| part == "tests" || part == "benches")
}

/// Appends the tokens of `stream`, group by group; documentation comments, which arrive as `#[doc = "…"]`, are left
/// out.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(word) => push(tokens, word.span().start().line, Kind::Word, word.to_string()),
            TokenTree::Literal(literal) => {
                push(tokens, literal.span().start().line, Kind::Literal, literal.to_string());
            }
            TokenTree::Punct(mark) => {
                let text = mark.as_char().to_string();
                // The quote of a lifetime stays with its name, so that `'a` is not read as the word `a`.
                let joined = mark.as_char() == '\'' && mark.spacing() == Spacing::Joint;
                push(tokens, mark.span().start().line, if joined { Kind::Literal } else { Kind::Mark }, text);
            }
            TokenTree::Group(group) => {
                if is_doc(&group.stream()) {
                    drop_attribute_start(tokens);
                    continue;
                }
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(tokens, group.span_open().start().line, Kind::Mark, open.into());
                flatten(group.stream(), tokens);
                push(tokens, group.span_close().start().line, Kind::Mark, close.into());
            }
        }
    }
}

fn push(tokens: &mut Vec<Token>, line: usize, kind: Kind, text: String) {
    tokens.push(Token { line, kind, text, place: Place::Shipped });
}

fn is_doc(stream: &TokenStream) -> bool {
    let mut trees = stream.clone().into_iter();
    let named = matches!(trees.next(), Some(TokenTree::Ident(word)) if word == "doc");
    named && matches!(trees.next(), Some(TokenTree::Punct(mark)) if mark.as_char() == '=')
}

fn drop_attribute_start(tokens: &mut Vec<Token>) {
    while tokens.last().is_some_and(|token| token.text == "#" || token.text == "!") {
        tokens.pop();
    }
}

/// Marks the tokens of items under `#[cfg(test)]` and answers how many lines those items take, attribute included.
fn mark_tests(tokens: &mut [Token]) -> usize {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut lines = 0;
    let mut at = 0;
    while at + ATTRIBUTE.len() <= tokens.len() {
        let found = tokens[at..].iter().zip(ATTRIBUTE).all(|(token, word)| token.text == word);
        if !found {
            at += 1;
            continue;
        }
        let end = end_of_item(tokens, at + ATTRIBUTE.len());
        lines += tokens[end].line - tokens[at].line + 1;
        tokens[at..=end].iter_mut().for_each(|token| token.place = Place::Test);
        at = end + 1;
    }
    lines
}

/// The index of the token that ends the item whose tokens begin at `from`: its closing brace, or its semicolon.
fn end_of_item(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => return index,
            "}" => depth -= 1,
            ";" if depth == 0 => return index,
            _ => {}
        }
    }
    tokens.len() - 1
}

fn find_functions(tokens: &[Token]) -> Vec<Function> {
    let named = |pair: &[Token]| pair[0].text == "fn" && pair[0].kind == Kind::Word && pair[1].kind == Kind::Word;
    let starts = tokens.windows(2).enumerate().filter(|(_, pair)| named(pair)).map(|(at, _)| at);
    let ended = starts.map(|at| (at, end_of_item(tokens, at)));
    let with_body = ended.filter(|(_, end)| tokens[*end].text == "}");
    with_body
        .map(|(at, end)| Function {
            name: tokens[at + 1].text.clone(),
            line: tokens[at].line,
            lines: tokens[end].line - tokens[at].line + 1,
            place: tokens[at].place,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Function, Place, Source};

    const SAMPLE: &str = r#"//! About.

/// Says fn not_me() {}.
fn one<'a>(x: [u8; 2]) -> &'a str {
    "{ fn nor_me() {"
}

trait T {
    fn bodiless(&self);
}

#[cfg(test)]
mod tests {
    #[test]
    fn two() { let f: fn(u8) = g; }
}
"#;

    #[test]
    fn functions_are_found_with_their_lines_and_place() {
        let source = Source::read("crates/x/src/a.rs", SAMPLE).unwrap();
        let one = Function { name: "one".into(), line: 4, lines: 3, place: Place::Shipped };
        let two = Function { name: "two".into(), line: 15, lines: 1, place: Place::Test };
        assert_eq!(source.functions, [one, two]);
    }

    #[test]
    fn test_items_do_not_count_as_lines() {
        assert_eq!(Source::read("crates/x/src/a.rs", SAMPLE).unwrap().shipped_lines, 11);
        assert_eq!(Source::read("crates/x/tests/it/main.rs", SAMPLE).unwrap().shipped_lines, 0);
    }

    #[test]
    fn words_in_comments_and_strings_are_not_code() {
        let source = Source::read("a.rs", "//! todo!()\nconst A: &str = \"todo!()\";\nfn f() { todo!() }\n").unwrap();
        let lines: Vec<usize> = source.places_of(&["todo", "!"]).iter().map(|token| token.line).collect();
        assert_eq!(lines, [3]);
    }
}
