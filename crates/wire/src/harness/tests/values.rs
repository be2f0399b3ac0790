//! Values of all kinds, for properties.

use nylorun_domain::checkpoint::{Answer, Interaction, InteractionKind, Said, SavedCall, State};
use nylorun_domain::compaction::{Compacted, Compaction, Trigger};
use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::id::{AgentId, CallId, EffectId, InteractionId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::{Json, Text};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailure, ModelFailureCode, ModelOutcome, ModelRef, OutputPart, ToolCall, ToolInput,
    ToolResult, Usage, Window,
};
use nylorun_domain::segment::{RecordedOutcome, SegmentInput, TurnEnd, TurnOutput};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Edit, Entry, Input};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Content that an ordinary reader would change.
pub(super) fn content() -> impl Strategy<Value = Json> {
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let nasty = [
        r#""\ud800\u0000""#,
        r#"{"a": 1.0e0,"a":[ ],"\u0061":-0}"#,
        "null",
        "\"\u{7f}é😀\"",
        "12345678901234567890123",
        &deep,
    ];
    let nasty = nasty.map(Json::from_trusted).to_vec();
    prop_oneof![prop::sample::select(nasty), text().prop_map(|text| nylorun_domain::json::Value::from(text).to_json())]
}

/// Text with lone surrogates and control characters.
pub(super) fn text() -> impl Strategy<Value = Text> {
    let unit = prop_oneof![any::<u16>(), Just(0_u16), 0xd800..0xe000_u16, 32..127_u16];
    vec(unit, 0..6).prop_map(Text::from_utf16)
}

pub(super) fn word() -> impl Strategy<Value = String> {
    "\\PC{0,8}"
}

macro_rules! ids {
    ($($name:ident: $type:ident;)+) => {$(
        pub(super) fn $name() -> impl Strategy<Value = $type> {
            "[a-zA-Z0-9:/_é😀 -]{1,12}".prop_map($type::from_trusted)
        }
    )+};
}

ids! {
    agent: AgentId;
    effect: EffectId;
    session: SessionId;
    turn: TurnId;
    invocation: InvocationId;
    call: CallId;
    interaction_id: InteractionId;
}

pub(super) fn hash() -> impl Strategy<Value = String> {
    "[0-9a-f]{64}"
}

pub(super) fn tool_outcome() -> impl Strategy<Value = ToolOutcome> {
    prop_oneof![
        content().prop_map(|output| ToolOutcome::Completed { output }),
        (word(), word()).prop_map(|(code, message)| ToolOutcome::Failed { code, message }),
    ]
}

fn part() -> impl Strategy<Value = OutputPart> {
    let input = prop_oneof![content().prop_map(ToolInput::Json), text().prop_map(ToolInput::Malformed)];
    prop_oneof![
        text().prop_map(OutputPart::Text),
        (text(), option::of(content())).prop_map(|(text, signature)| OutputPart::Reasoning { text, signature }),
        (call(), word(), input).prop_map(|(call_id, name, input)| OutputPart::ToolCall(ToolCall {
            call_id,
            name,
            input
        })),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<i64>(), any::<i64>(), option::of(any::<i64>())).prop_map(|(input, total, cost_nano_usd)| Usage {
        input,
        total,
        cost_nano_usd,
        ..Usage::default()
    })
}

fn model_ref() -> impl Strategy<Value = ModelRef> {
    (word(), word()).prop_map(|(provider, model)| ModelRef { provider, model })
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let window = (any::<i64>(), any::<i64>()).prop_map(|(context, output)| Window { context, output });
    let rest = (option::of(usage()), option::of(any::<i64>()), model_ref(), option::of(window));
    (vec(part(), 0..4), rest).prop_map(|(parts, (usage, size, model, window))| Candidate {
        parts,
        finish: FinishReason::ToolCalls,
        usage,
        size,
        model,
        window,
    })
}

fn model_outcome() -> impl Strategy<Value = ModelOutcome> {
    let code = prop::sample::select(ModelFailureCode::ALL);
    let failure = (code, word(), any::<bool>(), option::of(usage()), option::of(model_ref()));
    let failure = failure.prop_map(|(code, message, retryable, usage, model)| ModelFailure {
        code,
        message,
        retryable,
        usage,
        model,
    });
    prop_oneof![candidate().prop_map(ModelOutcome::Completed), failure.prop_map(ModelOutcome::Failed)]
}

fn compacted() -> impl Strategy<Value = Compacted> {
    let trigger = prop_oneof![Just(Trigger::Threshold), Just(Trigger::Overflow)];
    (trigger, any::<i64>(), any::<i64>()).prop_map(|(trigger, tokens_before, tokens_after)| Compacted {
        trigger,
        tokens_before,
        tokens_after,
    })
}

pub(super) fn outcome() -> impl Strategy<Value = EffectOutcome> {
    prop_oneof![
        model_outcome().prop_map(EffectOutcome::Model),
        (model_outcome(), option::of(compacted()))
            .prop_map(|(outcome, compacted)| EffectOutcome::Summary { outcome, compacted }),
        tool_outcome().prop_map(EffectOutcome::Tool),
        (word(), word()).prop_map(|(kind, prompt)| EffectOutcome::Asked { kind, prompt }),
        (effect(), vec(input(), 0..3)).prop_map(|(model, inputs)| EffectOutcome::Steer { model, inputs }),
    ]
}

pub(super) fn recorded() -> impl Strategy<Value = RecordedOutcome> {
    (effect(), hash(), outcome()).prop_map(|(effect_id, request_hash, outcome)| RecordedOutcome {
        effect_id,
        request_hash,
        outcome,
    })
}

pub(super) fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        text().prop_map(Input::Content),
        content().prop_map(Input::Data),
        vec(text(), 0..3).prop_map(Input::Parts),
    ]
}

pub(super) fn entry() -> impl Strategy<Value = Entry> {
    let result =
        (call(), word(), tool_outcome()).prop_map(|(call_id, name, outcome)| ToolResult { call_id, name, outcome });
    prop_oneof![
        input().prop_map(Entry::Input),
        (invocation(), candidate())
            .prop_map(|(invocation_id, candidate)| Entry::Candidate { invocation_id, candidate: candidate.into() }),
        vec(result, 0..3).prop_map(Entry::ToolResults),
        (text(), compacted()).prop_map(|(summary, compacted)| Entry::Compaction(Compaction { summary, compacted })),
        content().prop_map(|output| Entry::Final { output }),
    ]
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    (0..100_usize, vec(entry(), 0..3), 0..100_usize).prop_map(|(keep, entries, length)| Edit { keep, entries, length })
}

fn interaction() -> impl Strategy<Value = Interaction> {
    let kind =
        prop_oneof![Just(InteractionKind::Approval), "[b-z]{1,8}".prop_map(|word| InteractionKind::from_wire(&word)),];
    (interaction_id(), invocation(), call(), word(), kind, word()).prop_map(
        |(id, invocation_id, call_id, tool_name, kind, prompt)| Interaction {
            id,
            invocation_id,
            call_id,
            tool_name,
            kind,
            prompt,
        },
    )
}

fn state() -> impl Strategy<Value = State> {
    let call = prop_oneof![tool_outcome().prop_map(SavedCall::Done), interaction().prop_map(SavedCall::Waiting)];
    (0..1_000_usize, any::<u32>(), vec(call, 0..3)).prop_map(|(turn_start, steps, calls)| State {
        turn_start,
        steps,
        calls,
    })
}

pub(super) fn segment_input() -> impl Strategy<Value = SegmentInput> {
    let said = prop_oneof![Just(Said::Approved), Just(Said::Denied), content().prop_map(Said::Value)];
    let answer = (interaction_id(), said).prop_map(|(interaction_id, said)| Answer { interaction_id, said });
    prop_oneof![
        input().prop_map(SegmentInput::Message),
        (state(), vec(answer, 0..3)).prop_map(|(state, answers)| SegmentInput::Resume { state, answers }),
    ]
}

pub(super) fn output() -> impl Strategy<Value = TurnOutput> {
    let end = prop_oneof![
        content().prop_map(|output| TurnEnd::Completed { output }),
        (word(), word()).prop_map(|(code, message)| TurnEnd::Failed { code, message }),
        Just(TurnEnd::Uncertain),
        state().prop_map(|state| TurnEnd::Yielded { state }),
        (vec(interaction(), 0..3), state()).prop_map(|(interactions, state)| TurnEnd::Paused { interactions, state }),
    ];
    (end, vec(edit(), 0..3)).prop_map(|(end, edits)| TurnOutput { end, edits })
}
