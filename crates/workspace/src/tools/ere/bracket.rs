//! Bracket expressions: `[abc]`, `[^a-z]`, `[[:alpha:]]`, `[[.-.]]`, `[[=a=]]`.

use std::fmt::Write;

/// White space as the C.UTF-8 locale has it: without the no-break spaces.
pub(super) const SPACE: &str = r"[\s--[\x{a0}\x{2007}\x{202f}\x{85}]]";
/// All else.
pub(super) const NOT_SPACE: &str = r"[^\s--[\x{a0}\x{2007}\x{202f}\x{85}]]";

const UNMATCHED: &str = "Unmatched [, [^, [:, [., or [=";
const RANGE_END: &str = "Invalid range end";

/// One element of a bracket expression.
enum Element {
    /// A character, which may begin or end a range.
    Char(char),
    /// A class.
    Class(&'static str),
}

/// Translates what stands after `[`. Gives the set and what follows the closing bracket.
pub(super) fn translate(after: &str) -> Result<(String, &str), String> {
    let mut reader = Reader { rest: after };
    let mut set = String::from("[");
    if reader.take_if("^") {
        set.push('^');
    }
    let mut first = true;
    let mut range_of = None;
    while first || !reader.rest.starts_with(']') {
        let element = reader.element()?;
        if let (Element::Char('-'), false) = (&element, first || reader.at_range() || reader.rest.starts_with(']')) {
            // As in `[a-c-e]`: what the hyphen means here is undefined, and glibc refuses it.
            return Err(RANGE_END.to_owned());
        }
        first = false;
        match element {
            Element::Class(class) if reader.at_range() => return Err(format!("{RANGE_END} after {class}")),
            Element::Class(class) => set.push_str(class),
            Element::Char(low) if reader.at_range() => {
                reader.take_if("-");
                let Element::Char(high) = reader.element()? else { return Err(RANGE_END.to_owned()) };
                if high < low {
                    return Err(RANGE_END.to_owned());
                }
                push_range(low, high, &mut set);
                range_of = Some((low, high));
            }
            Element::Char(c) => push_range(c, c, &mut set),
        }
    }
    reader.take_if("]");
    set.push(']');
    // `[:alpha:]` without the outer brackets is a set of letters that nobody means.
    let inside = &after[..after.len() - reader.rest.len() - 1];
    if range_of.is_none() && inside.len() > 1 && inside.starts_with(':') && inside.ends_with(':') {
        return Err("Character class syntax is [[:space:]], not [:space:]".to_owned());
    }
    Ok((set, reader.rest))
}

fn push_range(low: char, high: char, set: &mut String) {
    let (low, high) = (u32::from(low), u32::from(high));
    // Writing to a string cannot fail.
    let _ = if low == high { write!(set, "\\x{{{low:x}}}") } else { write!(set, "\\x{{{low:x}}}-\\x{{{high:x}}}") };
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn take_if(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Whether a hyphen follows that makes a range: not the last character.
    fn at_range(&self) -> bool {
        self.rest.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && !rest.starts_with(']'))
    }

    fn element(&mut self) -> Result<Element, String> {
        if self.take_if("[:") {
            return class(self.until(":]")?).map(Element::Class).ok_or("Invalid character class name".to_owned());
        }
        if self.take_if("[.") {
            return single(self.until(".]")?);
        }
        if self.take_if("[=") {
            return single(self.until("=]")?);
        }
        let mut chars = self.rest.chars();
        let c = chars.next().ok_or_else(|| UNMATCHED.to_owned())?;
        self.rest = chars.as_str();
        Ok(Element::Char(c))
    }

    fn until(&mut self, end: &str) -> Result<&'a str, String> {
        let (inside, rest) = self.rest.split_once(end).ok_or_else(|| UNMATCHED.to_owned())?;
        self.rest = rest;
        Ok(inside)
    }
}

fn single(name: &str) -> Result<Element, String> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(Element::Char(c)),
        _ => Err("Invalid collation character".to_owned()),
    }
}

/// The classes as glibc's C.UTF-8 locale has them.
fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => r"[\p{Alphabetic}[\p{Nd}--[0-9]]]",
        "digit" => "[0-9]",
        "alnum" => r"[\p{Alphabetic}\p{Nd}]",
        "upper" => r"\p{Uppercase}",
        "lower" => r"\p{Lowercase}",
        "space" => SPACE,
        "blank" => r"[\t\p{Zs}--[\x{a0}\x{2007}\x{202f}]]",
        "punct" => r"[[\p{P}\p{S}\p{M}\p{N}\x{a0}\x{2007}\x{202f}]--[\p{Alphabetic}\p{Nd}]]",
        "cntrl" => r"[\p{Cc}\x{2028}\x{2029}]",
        "print" => r"[^\p{Cc}\p{Cn}\x{2028}\x{2029}]",
        "graph" => r"[[^\p{Cc}\p{Cn}\s]\x{a0}\x{2007}\x{202f}]",
        "xdigit" => "[0-9A-Fa-f]",
        _ => return None,
    })
}
