//! What is printed is read back, exactly.

use std::sync::Arc;

use nylorun_domain::compaction::{Compacted, Compaction, Trigger};
use nylorun_domain::effect::{EffectKind, EffectOutcome};
use nylorun_domain::id::{CallId, EffectId, InvocationId};
use nylorun_domain::json::{Document, Json, Text, Value, parse};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailure, ModelFailureCode, ModelOutcome, ModelRef, OutputPart, ToolCall, ToolInput,
    ToolResult, Usage, Window,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Entry, Input};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{entries_from_lines, entries_to_lines, entry_from_node, entry_len, entry_to_value};
use crate::candidate::Unreadable;
use crate::outcome;

/// Any text, lone surrogates and control characters included.
fn text() -> impl Strategy<Value = Text> {
    let unit = prop_oneof![4 => 0x20_u16..0x7f, 1 => 0_u16..0x20, 2 => 0xd7f0_u16..0xe010, 1 => any::<u16>()];
    vec(unit, 0..6).prop_map(Text::from_utf16)
}

/// Documents whose text a printer would change, and one that nests as deep as any may.
fn json() -> impl Strategy<Value = Json> {
    let deepest = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let odd = [" { \"a\" : 1.0e0 }", r#""\ud800\u0041\u0000""#, "-0.50", "null", "{\"b\":1,\"a\":[ ]}", &deepest];
    select(odd.map(|text| Json::parse(text).unwrap()).to_vec())
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<[i64; 6]>(), option::of(any::<i64>())).prop_map(
        |([input, output, cached, cache_write, reasoning, total], cost_nano_usd)| Usage {
            input,
            output,
            cached,
            cache_write,
            reasoning,
            total,
            cost_nano_usd,
        },
    )
}

fn model() -> impl Strategy<Value = ModelRef> {
    ("\\PC{0,6}", "\\PC{0,6}").prop_map(|(provider, model)| ModelRef { provider, model })
}

fn part() -> impl Strategy<Value = OutputPart> {
    let input = prop_oneof![json().prop_map(ToolInput::Json), text().prop_map(ToolInput::Malformed)];
    prop_oneof![
        text().prop_map(OutputPart::Text),
        (text(), option::of(json())).prop_map(|(text, signature)| OutputPart::Reasoning { text, signature }),
        ("\\PC{1,6}", "\\PC{0,6}", input).prop_map(|(id, name, input)| {
            OutputPart::ToolCall(ToolCall { call_id: CallId::from_trusted(id), name, input })
        }),
    ]
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let finish = [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::ContentFilter,
        FinishReason::Other,
    ];
    let window = any::<(i64, i64)>().prop_map(|(context, output)| Window { context, output });
    (
        vec(part(), 0..4),
        select(finish.to_vec()),
        option::of(usage()),
        option::of(any::<i64>()),
        model(),
        option::of(window),
    )
        .prop_map(|(parts, finish, usage, size, model, window)| Candidate {
            parts,
            finish,
            usage,
            size,
            model,
            window,
        })
}

fn tool_outcome() -> impl Strategy<Value = ToolOutcome> {
    prop_oneof![
        json().prop_map(|output| ToolOutcome::Completed { output }),
        ("\\PC{0,6}", ".{0,6}").prop_map(|(code, message)| ToolOutcome::Failed { code, message }),
    ]
}

fn effect_outcome() -> impl Strategy<Value = EffectOutcome> {
    let failure =
        (select(ModelFailureCode::ALL.to_vec()), ".{0,6}", any::<bool>(), option::of(usage()), option::of(model()))
            .prop_map(|(code, message, retryable, usage, model)| ModelFailure {
                code,
                message,
                retryable,
                usage,
                model,
            });
    prop_oneof![
        candidate().prop_map(|candidate| EffectOutcome::Model(ModelOutcome::Completed(candidate))),
        failure.prop_map(|failure| EffectOutcome::Model(ModelOutcome::Failed(failure))),
        (candidate(), option::of(compacted())).prop_map(|(candidate, compacted)| EffectOutcome::Summary {
            outcome: ModelOutcome::Completed(candidate),
            compacted
        }),
        ("\\PC{1,6}", ".{0,6}").prop_map(|(kind, prompt)| EffectOutcome::Asked { kind, prompt }),
        tool_outcome().prop_map(EffectOutcome::Tool),
        vec(input(), 1..3)
            .prop_map(|inputs| EffectOutcome::Steer { model: EffectId::from_trusted("t:0:model:i"), inputs }),
    ]
}

fn compacted() -> impl Strategy<Value = Compacted> {
    (select(Trigger::ALL.to_vec()), any::<i64>(), any::<i64>())
        .prop_map(|(trigger, tokens_before, tokens_after)| Compacted { trigger, tokens_before, tokens_after })
}

fn input() -> impl Strategy<Value = Input> {
    let parts = vec(text(), 0..3).prop_map(Input::Parts);
    prop_oneof![text().prop_map(Input::Content), json().prop_map(Input::Data), parts]
}

fn entry() -> impl Strategy<Value = Entry> {
    let result = ("\\PC{1,6}", "\\PC{0,6}", tool_outcome()).prop_map(|(id, name, outcome)| ToolResult {
        call_id: CallId::from_trusted(id),
        name,
        outcome,
    });
    prop_oneof![
        input().prop_map(Entry::Input),
        ("\\PC{1,6}", candidate()).prop_map(|(id, candidate)| Entry::Candidate {
            invocation_id: InvocationId::from_trusted(id),
            candidate: candidate.into()
        }),
        vec(result, 0..3).prop_map(Entry::ToolResults),
        (text(), compacted()).prop_map(|(summary, compacted)| Entry::Compaction(Compaction { summary, compacted })),
        json().prop_map(|output| Entry::Final { output }),
    ]
}

/// The value as a store gives it back, with a member in every object that this release does not know.
fn stored(value: &Value) -> Json {
    with_unknown(&parse(value.to_json().as_str()).unwrap()).to_json()
}

fn with_unknown(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(with_unknown).collect()),
        Value::Object(members) => {
            let known = members.iter().map(|(name, value)| (name.clone(), with_unknown(value)));
            Value::Object(known.chain([(Text::from("unknown"), Value::Null)]).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn entries_round_trip(entry in entry()) {
        let value = entry_to_value(&entry);
        prop_assert_eq!(entry_len(&entry), value.to_json().as_str().encode_utf16().count());
        let stored = stored(&value);
        prop_assert_eq!(entry_from_node(Document::parse(stored.as_str()).unwrap().root()), Ok(entry));
    }

    #[test]
    fn lines_of_entries_round_trip(entries in vec(entry(), 0..5)) {
        let lines = entries_to_lines(entries.iter());
        prop_assert_eq!(lines.matches('\n').count(), entries.len());
        prop_assert_eq!(entries_from_lines(&lines), Ok(entries));
    }

    #[test]
    fn outcomes_round_trip(outcome in effect_outcome()) {
        let kind = match &outcome {
            EffectOutcome::Model(_) | EffectOutcome::Summary { .. } => EffectKind::Model,
            EffectOutcome::Tool(_) | EffectOutcome::Asked { .. } => EffectKind::Tool,
            EffectOutcome::Steer { .. } => EffectKind::Steer,
        };
        let stored = stored(&outcome::to_value(&outcome));
        prop_assert_eq!(outcome::from_node(kind, Document::parse(stored.as_str()).unwrap().root()), Ok(outcome));
    }
}

#[test]
fn entries_look_like_this() {
    let entry = Entry::Candidate {
        invocation_id: InvocationId::from_trusted("i"),
        candidate: Arc::new(Candidate {
            parts: vec![
                OutputPart::Text(Text::from_utf16(vec![0xd800])),
                OutputPart::ToolCall(ToolCall {
                    call_id: CallId::from_trusted("c"),
                    name: "bash".to_owned(),
                    input: ToolInput::Json(Json::from_trusted(r#"{"command": "ls"}"#)),
                }),
            ],
            finish: FinishReason::ToolCalls,
            usage: Some(Usage { input: 1, total: 1, ..Usage::default() }),
            model: ModelRef { provider: "p".to_owned(), model: "m".to_owned() },
            size: Some(2),
            window: None,
        }),
    };
    let expected = concat!(
        r#"{"type":"candidate","invocationId":"i","candidate":{"parts":[{"type":"text","text":"\ud800"},"#,
        r#"{"type":"tool-call","callId":"c","name":"bash","input":"{\"command\": \"ls\"}"}],"#,
        r#""finishReason":"tool-calls","model":{"provider":"p","model":"m"},"#,
        r#""usage":{"input":1,"output":0,"cached":0,"cacheWrite":0,"reasoning":0,"total":1},"size":2}}"#,
    );
    assert_eq!(entry_to_value(&entry).to_json().as_str(), expected);
}

#[test]
fn what_cannot_be_read_says_why() {
    for (kind, document, problem) in [
        (EffectKind::Tool, r#"{"kind":"completed"}"#, "output"),
        (EffectKind::Tool, r#"{"kind":"odd"}"#, "the kind of an outcome"),
        (EffectKind::Model, r#"{"kind":"completed"}"#, "candidate"),
        (EffectKind::Model, r#"{"kind":"failed","code":"odd"}"#, "code"),
        (EffectKind::Agent, "{}", "the effect's kind has no outcome yet"),
    ] {
        let document = Document::parse(document).unwrap();
        assert_eq!(outcome::from_node(kind, document.root()), Err(Unreadable(problem)));
    }
    let odd = Document::parse(r#"{"type":"odd"}"#).unwrap();
    assert_eq!(entry_from_node(odd.root()), Err(Unreadable("the type of an entry")));
}
