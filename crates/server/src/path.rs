//! Percent-decoding of path segments and of query strings.

/// Why a path segment cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A path segment, decoded: every `%` begins two hexadecimal digits, and the result is UTF-8.
pub(crate) fn decode_segment(segment: &str) -> Result<String, Malformed> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (rest.next().and_then(hex), rest.next().and_then(hex)) else {
            return Err(Malformed);
        };
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).map_err(|_| Malformed)
}

fn hex(digit: &u8) -> Option<u8> {
    char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// The parameters of a query string, decoded as forms are: `+` is a space, and what is no UTF-8 becomes U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the `?`.
    pub(crate) fn parse(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first parameter of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All parameters of this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The names of all parameters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{Malformed, Query, decode_segment};

    #[test]
    fn decodes_segments() {
        for (segment, decoded) in [
            ("plain", "plain"),
            ("team-a%2Fproj-42", "team-a/proj-42"),
            ("a+b", "a+b"),
            ("%e2%82%AC", "€"),
            ("%00", "\0"),
            ("%25", "%"),
        ] {
            assert_eq!(decode_segment(segment).as_deref(), Ok(decoded));
        }
        for wrong in ["%", "%2", "%zz", "a%", "%2g", "%+1", "%ff", "%c3%28", "%e2%82", "%\u{e9}0"] {
            assert_eq!(decode_segment(wrong), Err(Malformed), "{wrong}");
        }
    }

    #[test]
    fn reads_queries() {
        let query = Query::parse("a=1&a=2&b=x+y%20z&c&=d&%zz=%ff");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), Some("x y z"));
        assert_eq!(query.get("c"), Some(""));
        assert_eq!(query.get("%zz"), Some("\u{fffd}"));
        assert_eq!(query.get("d"), None);
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.names().collect::<Vec<_>>(), ["a", "a", "b", "c", "", "%zz"]);
    }

    /// Seeded noise: decoding never panics, and what is encoded byte by byte comes back.
    #[test]
    fn noise_never_panics_and_encoded_text_comes_back() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let alphabet: Vec<char> = "%%%0aFzg+/?&=\u{e9}\u{1f600}\0".chars().collect();
        for _ in 0..5_000 {
            let length = next() % 24;
            let text: String = (0..length).map(|_| alphabet[(next() % alphabet.len() as u64) as usize]).collect();
            let _ = (decode_segment(&text), Query::parse(&text));
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            assert_eq!(decode_segment(&encoded), Ok(text));
        }
    }
}
