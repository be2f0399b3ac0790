//! What tells one item of a prompt from another, as canonical JSON (RFC 8785): members in the order of their names.
//!
//! It is part of what a call's request hash stands for, which the journal keeps: another form would make turns that a
//! process of an older release began drift. It is written without a value of it, since a first turn after a restart
//! writes that of every item.

use nylorun_domain::hash::sha256_hex;
use nylorun_domain::json::{Json, Text, write_quoted};
use nylorun_domain::model::{OutputPart, PromptItem, ToolCall, ToolInput, ToolResult, UserPart};
use nylorun_domain::tool::ToolOutcome;

/// Appends the item's form.
pub(crate) fn write(item: &PromptItem, out: &mut String) {
    match item {
        PromptItem::User(parts) => {
            out.push_str(r#"{"user":"#);
            array(out, parts, user_part);
        }
        PromptItem::Assistant(candidate) => {
            out.push_str(r#"{"assistant":"#);
            array(out, &candidate.parts, output_part);
            member(out, r#","model":"#, &candidate.model.model);
            member(out, r#","provider":"#, &candidate.model.provider);
        }
        PromptItem::ToolResults(results) => {
            out.push_str(r#"{"toolResults":"#);
            array(out, results, result);
        }
    }
    out.push('}');
}

fn user_part(out: &mut String, part: &UserPart) {
    match part {
        UserPart::Text(text) => text.write_json(out),
        UserPart::Image(image) => {
            member(out, r#"{"image":"#, &sha256_hex(image.bytes()));
            out.push('}');
        }
    }
}

fn output_part(out: &mut String, part: &OutputPart) {
    match part {
        OutputPart::Text(text) => text_member(out, r#"{"text":"#, text),
        OutputPart::Reasoning { text, signature } => {
            text_member(out, r#"{"reasoning":"#, text);
            document(out, r#","signature":"#, signature.as_ref());
        }
        OutputPart::ToolCall(ToolCall { call_id, name, input }) => {
            member(out, r#"{"callId":"#, call_id.as_str());
            match input {
                ToolInput::Json(input) => document(out, r#","input":"#, Some(input)),
                ToolInput::Malformed(text) => text_member(out, r#","malformed":"#, text),
            }
            member(out, r#","name":"#, name);
        }
    }
    out.push('}');
}

fn result(out: &mut String, ToolResult { call_id, name, outcome }: &ToolResult) {
    member(out, r#"{"callId":"#, call_id.as_str());
    match outcome {
        ToolOutcome::Completed { output } => {
            member(out, r#","name":"#, name);
            document(out, r#","output":"#, Some(output));
        }
        ToolOutcome::Failed { code, message } => {
            member(out, r#","code":"#, code);
            member(out, r#","message":"#, message);
            member(out, r#","name":"#, name);
        }
    }
    out.push('}');
}

fn array<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn member(out: &mut String, before: &str, text: &str) {
    out.push_str(before);
    write_quoted(text, out);
}

fn text_member(out: &mut String, before: &str, text: &Text) {
    out.push_str(before);
    text.write_json(out);
}

fn document(out: &mut String, before: &str, document: Option<&Json>) {
    out.push_str(before);
    match document {
        Some(document) => out.push_str(&document.canonical()),
        None => out.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::CallId;
    use nylorun_domain::json::{Json, Text, parse};
    use nylorun_domain::model::{
        Candidate, FinishReason, ModelRef, OutputPart, PromptItem, ToolCall, ToolInput, ToolResult, UserPart,
    };
    use nylorun_domain::tool::ToolOutcome;

    use super::write;

    fn call(input: ToolInput) -> OutputPart {
        OutputPart::ToolCall(ToolCall { call_id: CallId::from_trusted("c"), name: "bash".to_owned(), input })
    }

    fn result(outcome: ToolOutcome) -> ToolResult {
        ToolResult { call_id: CallId::from_trusted("\"c"), name: "bash".to_owned(), outcome }
    }

    /// These forms are in the journals of turns that run: they do not change.
    #[test]
    fn items_look_like_this_and_that_is_canonical() {
        let lone = Text::from_utf16(vec![0xd800]);
        let document = Json::from_trusted(r#"{ "b": 1.0, "a": [] }"#);
        let reasoning = |signature| OutputPart::Reasoning { text: "why".into(), signature };
        let candidate = Candidate {
            parts: vec![
                OutputPart::Text(lone.clone()),
                reasoning(None),
                reasoning(Some(document.clone())),
                call(ToolInput::Json(document.clone())),
                call(ToolInput::Malformed(lone.clone())),
            ],
            finish: FinishReason::Stop,
            usage: None,
            size: None,
            model: ModelRef { provider: "p".to_owned(), model: "m\n".to_owned() },
            window: None,
        };
        for (item, form) in [
            (
                PromptItem::User(vec![UserPart::Text("hi\"".into()), UserPart::Text(lone)]),
                r#"{"user":["hi\"","\ud800"]}"#,
            ),
            (PromptItem::User(Vec::new()), r#"{"user":[]}"#),
            (
                PromptItem::Assistant(candidate.into()),
                concat!(
                    r#"{"assistant":[{"text":"\ud800"},{"reasoning":"why","signature":null},"#,
                    r#"{"reasoning":"why","signature":{"a":[],"b":1}},"#,
                    r#"{"callId":"c","input":{"a":[],"b":1},"name":"bash"},"#,
                    r#"{"callId":"c","malformed":"\ud800","name":"bash"}],"model":"m\n","provider":"p"}"#,
                ),
            ),
            (
                PromptItem::ToolResults(vec![
                    result(ToolOutcome::Completed { output: document }),
                    result(ToolOutcome::failed("x", "no")),
                ]),
                concat!(
                    r#"{"toolResults":[{"callId":"\"c","name":"bash","output":{"a":[],"b":1}},"#,
                    r#"{"callId":"\"c","code":"x","message":"no","name":"bash"}]}"#,
                ),
            ),
        ] {
            let mut written = String::new();
            write(&item, &mut written);
            assert_eq!(written, form);
            assert_eq!(parse(form).unwrap().canonical(), form);
        }
    }
}
