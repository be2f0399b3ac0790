//! Parts of a JSON document as their author wrote them, byte for byte (decisions, Text and JSON).

use nylorun_domain::json::{Json, parse};

/// The value of the object member `name`, verbatim, when `document` is an object that has it. The last of equal names
/// wins.
pub fn member(document: &Json, name: &str) -> Option<Json> {
    let mut scanner = Scanner { text: document.as_str(), at: 0 };
    scanner.member(name).map(Json::from_trusted)
}

/// Walks over valid JSON. It judges nothing: on text that is not JSON it ends early.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn member(&mut self, name: &str) -> Option<&'a str> {
        let mut found = None;
        self.skip_space();
        if self.peek() != Some(b'{') {
            return None;
        }
        self.at += 1;
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return found;
            }
            let key = self.value();
            self.skip_space();
            self.at += 1;
            self.skip_space();
            let value = self.value();
            if parse(key).is_ok_and(|key| key.as_str() == Some(name)) {
                found = Some(value);
            }
            self.skip_space();
            if self.peek() != Some(b',') {
                return found;
            }
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The value that begins here.
    fn value(&mut self) -> &'a str {
        let start = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                _ if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => self.skip_word(),
            }
            if depth == 0 {
                break;
            }
        }
        &self.text[start..self.at]
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn skip_word(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.')) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::Json;

    use super::member;

    #[test]
    fn gives_members_verbatim() {
        let text = r#" { "a" : [1.0e0, {"]":"\"}"} ] ,"b":"\ud800\u0000", "n": -0.50 , "o":{ } ,"a2":null}"#;
        let document = Json::parse(text).unwrap();
        let get = |name| member(&document, name).map(|json| json.as_str().to_owned());
        assert_eq!(get("a").as_deref(), Some(r#"[1.0e0, {"]":"\"}"} ]"#));
        assert_eq!(get("b").as_deref(), Some(r#""\ud800\u0000""#));
        assert_eq!(get("n").as_deref(), Some("-0.50"));
        assert_eq!(get("o").as_deref(), Some("{ }"));
        assert_eq!(get("a2").as_deref(), Some("null"));
        assert_eq!(get("c"), None);
    }

    #[test]
    fn the_last_of_equal_names_wins_and_escaped_names_are_equal() {
        let document = Json::parse(r#"{"a":1,"\u0061":2}"#).unwrap();
        assert_eq!(member(&document, "a"), Some(Json::from_trusted("2")));
    }

    #[test]
    fn only_objects_have_members() {
        for text in ["[]", "1", "null", "{}", "\"a\""] {
            assert_eq!(member(&Json::parse(text).unwrap(), "a"), None, "{text}");
        }
    }
}
