//! A parsed JSON document.

use super::{Json, Text, text::write_quoted};

/// A JSON value. Object members keep the order in which their names first stood; a name stands once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(Number),
    /// A string.
    String(Text),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(Text, Value)>),
}

/// A JSON number as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Box<str>);

impl Number {
    /// `raw` must be a JSON number; only the parser calls this.
    pub(super) fn from_raw(raw: &str) -> Self {
        Self(raw.into())
    }

    /// The number as written.
    pub fn as_raw(&self) -> &str {
        &self.0
    }

    /// The nearest double, as JavaScript reads it; infinite when out of range.
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// So many billionths, written as a decimal number without needless zeros: `1.5` for 1,500,000,000. Exact.
    pub fn from_billionths(billionths: i64) -> Self {
        const ONE: u64 = 1_000_000_000;
        let sign = if billionths < 0 { "-" } else { "" };
        let size = billionths.unsigned_abs();
        let (whole, part) = (size / ONE, size % ONE);
        let decimals = format!("{part:09}");
        match decimals.trim_end_matches('0') {
            "" => Self(format!("{sign}{whole}").into()),
            decimals => Self(format!("{sign}{whole}.{decimals}").into()),
        }
    }

    /// The number as an integer that a double holds exactly, also when it is written `1.0` or `1e3`.
    pub fn as_i64(&self) -> Option<i64> {
        const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
        let value = self.as_f64();
        (value.fract() == 0.0 && value.abs() <= MAX_SAFE).then_some(value as i64)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

impl Value {
    /// An object of these members.
    pub fn object<K: Into<Text>>(members: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// The member of this name, when this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.iter().find(|(key, _)| *key == name).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// The string, when this is one.
    pub fn as_text(&self) -> Option<&Text> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The string as UTF-8, when this is a string without lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().and_then(Text::as_str)
    }

    /// The boolean, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The integer, when this is a whole number that a double holds exactly.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }

    /// The nearest double, when this is a number; infinite when out of range.
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(number.as_f64()) } else { None }
    }

    /// The elements, when this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The members, when this is an object.
    pub fn as_object(&self) -> Option<&[(Text, Value)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The value as compact text, numbers as written.
    pub fn to_json(&self) -> Json {
        let mut out = String::new();
        self.write(&mut out);
        Json::from_trusted(out)
    }

    /// Appends the value as compact text.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(number) => out.push_str(number.as_raw()),
            Self::String(text) => text.write_json(out),
            Self::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    name.write_json(out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

/// A JSON string literal of `text`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn billionths_are_printed_exactly() {
        for (billionths, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (-20_000_000, "-0.02"),
            (3_000_000_000, "3"),
            (i64::MAX, "9223372036.854775807"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(Number::from_billionths(billionths).as_raw(), text);
        }
    }
}
