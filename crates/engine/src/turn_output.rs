//! A turn's output from the model's last answer (decisions, Turn output; engine b.10, Structured output).

use nylorun_domain::json::{Json, Value};
use nylorun_domain::model::Candidate;

use crate::repair::repair;

/// The text as a JSON string; with an output schema, the JSON document that the text is or holds: alone, in a code
/// fence, after other words, or broken in a way that can be mended. The error is the reason for the person who reads
/// the failed turn.
pub(crate) fn of(candidate: &Candidate, schema: Option<&Json>) -> Result<Json, String> {
    let text = candidate.text();
    if schema.is_none() {
        return Ok(Value::from(text).to_json());
    }
    let text = text.lossy();
    let body = fenced(&text).unwrap_or(&text);
    let mended = || repair(body).and_then(|mended| Json::parse(&mended).ok());
    let parsed = Json::parse(&text)
        .or_else(|error| Json::parse(body).ok().or_else(|| within(&text)).or_else(mended).ok_or(error));
    parsed.map_err(|error| {
        format!("The model's answer is not the JSON that the agent's output schema asks for: {error}.")
    })
}

/// The object that stands between other words.
fn within(text: &str) -> Option<Json> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    Json::parse(text.get(start..=end)?).ok()
}

/// What stands in the first code fence of a text.
fn fenced(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let (_, body) = after.split_once('\n')?;
    Some(body.split_once("```").map_or(body, |(body, _)| body))
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::{Json, Text};
    use nylorun_domain::model::{Candidate, FinishReason, ModelRef, OutputPart};

    use super::of;

    fn output(text: Text, schema: Option<&Json>) -> Result<String, String> {
        let candidate = Candidate {
            parts: vec![OutputPart::Text(text)],
            finish: FinishReason::Stop,
            usage: None,
            model: ModelRef { provider: "fixture".to_owned(), model: "fixture".to_owned() },
            size: None,
            window: None,
        };
        of(&candidate, schema).map(|json| json.as_str().to_owned())
    }

    #[test]
    fn text_is_a_json_string_exactly() {
        assert_eq!(output(Text::from("a\"\0"), None).unwrap(), r#""a\"\u0000""#);
        assert_eq!(output(Text::from_utf16(vec![0x61, 0xd800]), None).unwrap(), r#""a\ud800""#);
        assert_eq!(output(Text::from("{}"), None).unwrap(), r#""{}""#);
    }

    #[test]
    fn a_document_is_taken_out_of_its_fence() {
        let schema = Json::from_trusted("{}");
        for text in [
            "{\"a\": 1}",
            " {\"a\": 1}\n",
            "```json\n{\"a\": 1}\n```",
            "Here:\n```\n{\"a\": 1}",
            "Here it is: {\"a\": 1}. Well?",
        ] {
            assert_eq!(output(text.into(), Some(&schema)).unwrap(), "{\"a\": 1}", "{text}");
        }
    }

    #[test]
    fn a_broken_document_is_mended() {
        let schema = Json::from_trusted("{}");
        for text in ["{'a': 1,}", "```json\n{a: 1\n```", "{\"a\": 1"] {
            assert_eq!(output(text.into(), Some(&schema)).unwrap(), "{\"a\":1}", "{text}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused_with_the_reason() {
        let schema = Json::from_trusted("{}");
        let message = output("sorry".into(), Some(&schema)).unwrap_err();
        assert_eq!(
            message,
            "The model's answer is not the JSON that the agent's output schema asks for: \
             unexpected character at byte 0."
        );
    }
}
