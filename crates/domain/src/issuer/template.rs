//! Texts with places for claims: `user-{sub}` (api 1.6).

use std::fmt;

use crate::grammar::is_id_segment;
use crate::json::{Value, utf16_len};

/// Most characters of a template (api 1.6).
pub const MAX_TEMPLATE: usize = 200;

/// A text with places for claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Claim(String),
}

/// What a claim's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimRule {
    /// Any text, number or boolean that is not empty.
    Any,
    /// One segment of an id: it can neither end it nor reach beside it.
    Segment,
}

/// Why a template cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// The token has no such claim.
    Missing(String),
    /// The claim is empty, or neither text nor number nor boolean.
    NotScalar(String),
    /// The claim is not one segment.
    NotSegment(String),
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(claim) => write!(f, "the token has no claim {claim}"),
            Self::NotScalar(claim) => write!(f, "the claim {claim} is no text, number or boolean, or is empty"),
            Self::NotSegment(claim) => write!(
                f,
                "the claim {claim} may hold only letters, digits, '.', '_' and '-', and begins with a letter or digit"
            ),
        }
    }
}

impl Template {
    /// Reads a template of 1 to [`MAX_TEMPLATE`] characters. `{name}` stands for the claim of that name; braces stand
    /// for nothing else.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || utf16_len(text) > MAX_TEMPLATE {
            return Err("Invalid template: expected 1 to 200 characters");
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(open);
            let inside = from.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let (claim, after) = inside.ok_or("Invalid template: a brace is not closed, or was not opened")?;
            if claim.is_empty() || claim.contains('{') {
                return Err("Invalid template: braces hold the name of a claim, such as {sub}");
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Claim(claim.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// Whether it names a claim: without one, every token gives the same.
    pub fn names_a_claim(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Claim(_)))
    }

    /// What it gives with these values in the place of every claim.
    pub(super) fn fill(&self, claims: &Value, rule: ClaimRule) -> Result<String, Unfilled> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Claim(name) => filled.push_str(&scalar(name, claims.get(name), rule)?),
            }
        }
        Ok(filled)
    }

    /// What it gives when every claim is `value`, for checks before there is a token.
    pub fn sample(&self, value: &str) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Claim(_) => value,
        });
        pieces.collect()
    }
}

fn scalar(name: &str, claim: Option<&Value>, rule: ClaimRule) -> Result<String, Unfilled> {
    let text = match claim {
        None | Some(Value::Null) => return Err(Unfilled::Missing(name.to_owned())),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(number)) => number.as_raw().to_owned(),
        Some(value @ (Value::String(_) | Value::Array(_) | Value::Object(_))) => {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.ok_or_else(|| Unfilled::NotScalar(name.to_owned()))?.to_owned()
        }
    };
    match rule {
        ClaimRule::Segment if !is_id_segment(&text) => Err(Unfilled::NotSegment(name.to_owned())),
        ClaimRule::Segment | ClaimRule::Any => Ok(text),
    }
}
