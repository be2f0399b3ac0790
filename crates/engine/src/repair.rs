//! Mending JSON as models break it: trailing commas, single quotes, bare names, what was cut off (engine b.10).

/// Deepest nesting that is mended; a valid document has no more levels.
const MAX_DEPTH: usize = 128;

/// A text that is meant to be a JSON object or array, mended; `None` when it begins with neither. What is given is not
/// always JSON: the caller parses it.
pub(crate) fn repair(text: &str) -> Option<String> {
    let text = text.trim_start();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut repair = Repair { chars: text.chars().collect(), at: 0, out: String::with_capacity(text.len()) };
    repair.value(0)?;
    Some(repair.out)
}

struct Repair {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Repair {
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    /// Copies the value that begins here; `None` when nothing can be made of it.
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek() {
            Some('{') => self.list('{', '}', depth),
            Some('[') => self.list('[', ']', depth),
            Some(quote @ ('"' | '\'' | '“' | '”')) => self.string(quote),
            Some(_) => self.word(),
            None => {
                self.out.push_str("null");
                Some(())
            }
        }
    }

    /// An object or array, closed where the text ends.
    fn list(&mut self, open: char, close: char, depth: usize) -> Option<()> {
        self.at += 1;
        self.out.push(open);
        let mut is_first = true;
        loop {
            match self.peek() {
                None => break,
                Some(',') => self.at += 1,
                Some(c @ ('}' | ']')) => {
                    // A bracket of the other kind closes what is around this one.
                    if c == close {
                        self.at += 1;
                    }
                    break;
                }
                Some(_) => {
                    if !is_first {
                        self.out.push(',');
                    }
                    is_first = false;
                    if open == '{' {
                        self.name()?;
                    }
                    self.value(depth + 1)?;
                }
            }
        }
        self.out.push(close);
        Some(())
    }

    /// A member's name and its colon.
    fn name(&mut self) -> Option<()> {
        match self.peek()? {
            quote @ ('"' | '\'' | '“' | '”') => self.string(quote)?,
            _ => {
                let start = self.at;
                while self.chars.get(self.at).is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$')) {
                    self.at += 1;
                }
                let name: String = self.chars[start..self.at].iter().collect();
                if name.is_empty() {
                    return None;
                }
                self.quote(&name);
            }
        }
        self.out.push(':');
        if self.peek() == Some(':') {
            self.at += 1;
        }
        Some(())
    }

    /// A string in any quotation marks, closed where the text ends.
    fn string(&mut self, quote: char) -> Option<()> {
        let closing = if quote == '“' { '”' } else { quote };
        self.at += 1;
        let mut text = String::new();
        self.out.push('"');
        while let Some(c) = self.chars.get(self.at).copied() {
            self.at += 1;
            match c {
                c if c == closing => break,
                '\\' => self.escape(&mut text),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => text.push(c),
            }
        }
        self.out.push_str(&text);
        self.out.push('"');
        Some(())
    }

    /// What follows a backslash: an escape of JSON as it is, anything else as the character itself.
    fn escape(&mut self, text: &mut String) {
        let Some(c) = self.chars.get(self.at).copied() else { return };
        self.at += 1;
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }

    /// A number or a literal, also in the words of other languages; anything else as a string.
    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| !matches!(c, ',' | '}' | ']' | '\n')) {
            self.at += 1;
        }
        let word: String = self.chars[start..self.at].iter().collect();
        match word.trim() {
            "" | ":" => return None,
            "true" | "True" => self.out.push_str("true"),
            "false" | "False" => self.out.push_str("false"),
            "null" | "None" | "undefined" | "NaN" => self.out.push_str("null"),
            number if nylorun_domain::json::parse(number).is_ok() => self.out.push_str(number),
            other => self.quote(other),
        }
        Some(())
    }

    fn quote(&mut self, text: &str) {
        self.out.push_str(&nylorun_domain::json::quoted(text));
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::parse;

    use super::repair;

    #[test]
    fn mends_what_models_break() {
        for (broken, mended) in [
            (r#"{"a": 1,}"#, r#"{"a":1}"#),
            (r#"[1, 2,, 3"#, "[1,2,3]"),
            ("{'a': 'it\\'s \"b\"'}", r#"{"a":"it's \"b\""}"#),
            ("{a: True, b_1: None, c-d: -1.50}", r#"{"a":true,"b_1":null,"c-d":-1.50}"#),
            ("{\"a\": \"line\nbreak\ttab\"}", r#"{"a":"line\nbreak\ttab"}"#),
            (r#"{"a": [{"b": "cut of"#, r#"{"a":[{"b":"cut of"}]}"#),
            (r#"{"a": [1, {"b": 2]}"#, r#"{"a":[1,{"b":2}]}"#),
            ("{\"a\": 1} and that is all", r#"{"a":1}"#),
            ("{“a”: ok then}", r#"{"a":"ok then"}"#),
        ] {
            assert_eq!(repair(broken).as_deref(), Some(mended), "{broken}");
            assert!(parse(mended).is_ok(), "{mended}");
        }
    }

    #[test]
    fn leaves_alone_what_is_no_document() {
        for text in ["sorry", "", "\"a\"", "12", "see [1]"] {
            assert_eq!(repair(text), None, "{text}");
        }
        assert_eq!(repair(&"[".repeat(1_000)), None);
        assert_eq!(repair("{:}"), None);
    }
}
