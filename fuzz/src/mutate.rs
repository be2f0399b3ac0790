//! Changes to an input that keep most of its structure: lines stay lines, JSON stays JSON, so that the change reaches
//! what lies behind the parser.

use nylorun_domain::json::{Json, Text, Value};

use crate::random::Random;

/// Longest input that is made, in bytes.
const LONGEST: usize = 256 << 10;

/// Values that readers take for something else than was meant.
const LEAVES: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "-1",
    "1",
    "1e400",
    "1e-400",
    "0.1",
    "9007199254740993",
    "9223372036854775808",
    "\"\"",
    "\"a\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\n\"",
    "\"é😀\"",
    "[]",
    "{}",
    "[[]]",
    "{\"\":0}",
    "\"..\"",
    "\"#\"",
];

/// Bytes that end, begin or join something.
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"id: ",
    b"event: ",
    b": ",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\u",
    b"\\ud800",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"h1.",
    b"..",
    b"/",
    b"%",
    b"*",
    b"e",
    b"-",
    b"0",
    b"[DONE]",
    b"18446744073709551616",
];

/// The input of one case: an input of the corpus with one to five changes.
pub fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.of_these(inputs).cloned().unwrap_or_default();
    for _ in 0..=random.below(5) {
        change(&mut input, inputs, random);
        input.truncate(LONGEST);
    }
    input
}

fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut Random) {
    match random.below(10) {
        0..4 => change_json_in_a_line(input, random),
        4..7 => change_lines(input, inputs, random),
        7..9 => change_bytes(input, random),
        _ => repeat(input, random),
    }
}

/// Changes a value within the JSON that ends one of the lines.
fn change_json_in_a_line(input: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len());
    let Some(line) = lines.get_mut(at) else { return };
    let Some(begin) = line.iter().position(|byte| matches!(byte, b'{' | b'[')) else { return };
    let json = std::str::from_utf8(&line[begin..]).ok().and_then(|text| Json::parse(text).ok());
    let Some(json) = json else { return change_bytes(input, random) };
    let mut value = json.value();
    let others = value.clone();
    change_value(&mut value, &others, random);
    line.truncate(begin);
    line.extend_from_slice(value.to_json().as_str().as_bytes());
    *input = lines.join(&b'\n');
}

fn change_value(value: &mut Value, whole: &Value, random: &mut Random) {
    let deeper = random.below(5) > 0;
    match value {
        Value::Object(members) if deeper && !members.is_empty() => {
            let at = random.below(members.len());
            match random.below(8) {
                0 => drop(members.remove(at)),
                1 => members.push(members[at].clone()),
                2 => members[at].0 = a_name(whole, random),
                3 => members.push((a_name(whole, random), a_part(whole, random))),
                _ => change_value(&mut members[at].1, whole, random),
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                2 => items.swap(0, at),
                3 => items.insert(at, a_part(whole, random)),
                _ => change_value(&mut items[at], whole, random),
            }
        }
        Value::String(text) if deeper && random.below(2) == 0 => {
            let mut bytes = text.lossy().into_owned().into_bytes();
            change_bytes(&mut bytes, random);
            *text = Text::from(String::from_utf8_lossy(&bytes).into_owned());
        }
        _ => *value = a_part(whole, random),
    }
}

/// A leaf, or a part that stands elsewhere in the document.
fn a_part(whole: &Value, random: &mut Random) -> Value {
    if random.below(2) == 0 {
        let leaf = random.of_these(LEAVES).and_then(|leaf| Json::parse(leaf).ok());
        return leaf.map_or(Value::Null, |leaf| leaf.value());
    }
    let mut part = whole;
    loop {
        let inner: Vec<&Value> = match part {
            Value::Object(members) => members.iter().map(|(_, value)| value).collect(),
            Value::Array(items) => items.iter().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        match random.of_these(&inner) {
            Some(next) if random.below(4) > 0 => part = next,
            Some(_) | None => return part.clone(),
        }
    }
}

/// A name that stands somewhere in the document, or a new one.
fn a_name(whole: &Value, random: &mut Random) -> Text {
    match a_part(whole, random) {
        Value::Object(members) => {
            random.of_these(&members).map_or_else(|| Text::from("x".to_owned()), |(name, _)| name.clone())
        }
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Text::from("x".to_owned()),
    }
}

fn change_lines(input: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut Random) {
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let at = random.below(lines.len());
    let other = random.of_these(inputs).map_or(&[][..], Vec::as_slice);
    let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
    match random.below(5) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at]),
        2 => lines.swap(0, at),
        3 => lines.truncate(at + 1),
        _ => lines.insert(at, random.of_these(&others).copied().unwrap_or_default()),
    }
    *input = lines.join(&b'\n');
}

fn change_bytes(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(5) {
        0 if at < input.len() => input[at] = random.number().to_le_bytes()[0],
        1 if at < input.len() => input[at] ^= 1 << random.below(8),
        2 if at < input.len() => drop(input.remove(at)),
        3 => input.truncate(at),
        _ => {
            let piece = random.of_these(PIECES).copied().unwrap_or_default();
            input.splice(at..at, piece.iter().copied());
        }
    }
}

/// The same piece many times: what takes more than its share of time for that shows here.
fn repeat(input: &mut Vec<u8>, random: &mut Random) {
    let begin = random.below(input.len());
    let end = begin + 1 + random.below(64);
    let piece = input.get(begin..end.min(input.len())).unwrap_or_default().to_vec();
    let times = [2, 20, 300, 3_000][random.below(4)];
    let all = piece.repeat(times);
    input.splice(begin..begin, all);
}
