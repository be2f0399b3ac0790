//! The one canonical printer (RFC 8785): JavaScript number printing, keys by UTF-16 code unit, no spaces.

use super::{Text, Value};

/// Prints `value` canonically. A number that no double holds prints as `null`, as `JSON.stringify` does.
pub(super) fn print(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => value.write(out),
        Value::Number(number) => write_number(number.as_f64(), out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_number(number: f64, out: &mut String) {
    if number.is_finite() {
        out.push_str(ryu_js::Buffer::new().format_finite(number));
    } else {
        out.push_str("null");
    }
}

fn write_object(members: &[(Text, Value)], out: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp_utf16(b));
    out.push('{');
    for (at, (name, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        name.write_json(out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}
