//! The event envelope `nylorun.event/2` and its payloads (api 4). The record holds the newer names `environment.*`.

use nylorun_domain::change::EffectTool;
use nylorun_domain::compaction::Compacted;
use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::event::{Event, Payload};
use nylorun_domain::id::{InteractionId, InvocationId, TenantId, TurnId};
use nylorun_domain::json::{Document, Json, Node, Value};
use nylorun_domain::model::{Candidate, ModelFailure, ToolCall, ToolInput, Usage};
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::transcript::{Edit, Folding, Input};
use nylorun_domain::workspace::WorkspaceEvent;

use crate::checkpoint::pending_to_value;
use crate::cursor;
use crate::raw::member;
use crate::transcript::{entry_from_node, entry_to_value};
use crate::writer::Object;

const TRANSCRIPT_UPDATED: &str = "transcript.updated";

/// The event's `type`.
pub fn event_type(payload: &Payload) -> &'static str {
    match payload {
        Payload::CommandMessage { .. } => "command.message",
        Payload::MessageQueued { .. } => "message.queued",
        Payload::MessageSteered { .. } => "message.steered",
        Payload::MessageRemoved { .. } => "message.removed",
        Payload::CommandApprove { .. } => "command.approve",
        Payload::CommandRespond { .. } => "command.respond",
        Payload::TurnPaused { .. } => "turn.paused",
        Payload::TurnCompleted { .. } => "turn.completed",
        Payload::TurnFailed { .. } => "turn.failed",
        Payload::TurnCancelled { .. } => "turn.cancelled",
        Payload::MessageAssistant { .. } => "message.assistant",
        Payload::ModelFailed { .. } => "model.failed",
        Payload::ContextCompacted { .. } => "context.compacted",
        Payload::ToolCompleted { .. } => "tool.completed",
        Payload::EffectUncertain { .. } => "effect.uncertain",
        Payload::EffectSettled { .. } => "effect.settled",
        Payload::TranscriptUpdated(_) => TRANSCRIPT_UPDATED,
        Payload::Workspace(WorkspaceEvent::State { .. }) => "environment.state",
        Payload::Workspace(WorkspaceEvent::Exec { .. }) => "environment.exec",
    }
}

/// Prints an event as the record keeps it.
pub fn encode(event: &Event, tenant: &TenantId) -> String {
    let mut out = String::with_capacity(768);
    let mut envelope = Object::open(&mut out);
    envelope.str("schema", "nylorun.event/2");
    envelope.str("eventId", event.id.as_str());
    envelope.str("tenantId", tenant.as_str());
    envelope.str("sessionId", event.session_id.as_str());
    envelope.null("runId");
    envelope.nullable("turnId", event.turn_id.as_ref().map(|turn| turn.as_str()));
    envelope.int("incarnation", 0);
    envelope.int("epoch", event.epoch);
    envelope.int("seq", event.seq);
    envelope.str("cursor", &cursor::event(&event.session_id, event.seq));
    envelope.str("time", &event.time.to_iso());
    envelope.int("schemaVersion", 1);
    envelope.object("source", |source| {
        source.str("kind", event.source.as_str());
        source.str("id", "runtime");
    });
    envelope.str("evidence", "observed");
    envelope.str("visibility", event.payload.visibility().as_str());
    envelope.str("retention", "full");
    envelope.str("type", event_type(&event.payload));
    envelope.object("payload", |payload| write_payload(payload, &event.payload));
    envelope.close();
    out
}

fn write_payload(out: &mut Object<'_>, payload: &Payload) {
    match payload {
        Payload::CommandMessage { request_id, idempotency_key, input, manifest } => {
            write_command(out, request_id, idempotency_key);
            out.str("type", "message");
            write_content(out, input, manifest.as_ref());
        }
        Payload::MessageQueued { message_id, mode, request_id, idempotency_key, input, manifest } => {
            out.str("messageId", message_id.as_str());
            out.str("mode", mode.as_str());
            write_command(out, request_id, idempotency_key);
            write_content(out, input, manifest.as_ref());
        }
        Payload::MessageSteered { message_id, request_id, idempotency_key, input } => {
            out.str("messageId", message_id.as_str());
            write_command(out, request_id, idempotency_key);
            write_input(out, input);
        }
        Payload::MessageRemoved { message_id, reason } => {
            out.str("messageId", message_id.as_str());
            out.str("reason", reason.as_str());
        }
        Payload::CommandApprove { request_id, idempotency_key, interaction_id, approved } => {
            write_command(out, request_id, idempotency_key);
            write_answer(out, "approve", interaction_id, |out| out.value("approved", &Value::Bool(*approved)));
        }
        Payload::CommandRespond { request_id, idempotency_key, interaction_id, value } => {
            write_command(out, request_id, idempotency_key);
            write_answer(out, "respond", interaction_id, |out| out.json("value", value));
        }
        Payload::TurnPaused { interactions } => {
            out.value("interactions", &Value::Array(interactions.iter().map(pending_to_value).collect()));
        }
        Payload::TurnCompleted { output } => out.json("output", output),
        Payload::TurnFailed { code, message } => out.object("error", |error| {
            error.str("code", code);
            error.str("message", message);
        }),
        Payload::TurnCancelled { reason } => {
            if let Some(reason) = reason {
                out.text("reason", reason);
            }
        }
        Payload::MessageAssistant { invocation_id, candidate } => write_assistant(out, invocation_id, candidate),
        Payload::ModelFailed { invocation_id, failure } => write_failure(out, invocation_id, failure),
        Payload::ContextCompacted { invocation_id, compacted } => write_compacted(out, invocation_id, compacted),
        Payload::ToolCompleted { call_id, invocation_id, capability_id, tool_name, outcome } => {
            out.str("callId", call_id.as_str());
            out.str("invocationId", invocation_id.as_str());
            out.str("capabilityId", capability_id);
            out.str("toolName", tool_name);
            write_tool_outcome(out, outcome);
        }
        Payload::EffectUncertain { effect_id, invocation_id, tool, message } => {
            out.str("effectId", effect_id.as_str());
            out.str("message", message);
            out.str("invocationId", invocation_id.as_str());
            if let Some(tool) = tool {
                write_call_in_doubt(out, tool);
            }
        }
        Payload::EffectSettled { request_id, idempotency_key, effect_id, outcome } => {
            write_command(out, request_id, idempotency_key);
            out.str("effectId", effect_id.as_str());
            out.object("outcome", |out| write_settled(out, outcome.as_ref()));
        }
        Payload::TranscriptUpdated(edit) => write_edit(out, edit),
        Payload::Workspace(event) => write_workspace(out, event),
    }
}

/// Which call it is: the catalogue leaves room for more members than `effectId` and `message` (api 4.1).
fn write_call_in_doubt(out: &mut Object<'_>, tool: &EffectTool) {
    out.str("callId", tool.call_id.as_str());
    out.str("capabilityId", &tool.capability_id);
    out.str("toolName", &tool.name);
    if let Some(workspace_tool) = WorkspaceTool::from_wire(&tool.name) {
        out.optional(workspace_tool.subject_name(), tool.subject.as_deref());
    }
}

fn write_command(out: &mut Object<'_>, request_id: &str, idempotency_key: &str) {
    out.str("requestId", request_id);
    out.str("idempotencyKey", idempotency_key);
}

fn write_answer(out: &mut Object<'_>, kind: &str, id: &InteractionId, answer: impl FnOnce(&mut Object<'_>)) {
    out.str("type", kind);
    out.str("interactionId", id.as_str());
    answer(out);
}

fn write_failure(out: &mut Object<'_>, invocation_id: &InvocationId, failure: &ModelFailure) {
    out.str("invocationId", invocation_id.as_str());
    out.str("code", failure.code.as_str());
    out.str("message", &failure.message);
    out.value("retryable", &Value::Bool(failure.retryable));
}

fn write_compacted(out: &mut Object<'_>, invocation_id: &InvocationId, compacted: &Compacted) {
    out.str("invocationId", invocation_id.as_str());
    out.str("trigger", compacted.trigger.as_str());
    out.int("tokensBefore", compacted.tokens_before);
    out.int("tokensAfter", compacted.tokens_after);
}

fn write_content(out: &mut Object<'_>, input: &Input, manifest: Option<&Json>) {
    write_input(out, input);
    if let Some(manifest) = manifest {
        out.json("manifest", manifest);
    }
}

fn write_input(out: &mut Object<'_>, input: &Input) {
    match input {
        Input::Content(text) => out.text("content", text),
        Input::Data(data) => out.json("data", data),
        Input::Parts(parts) => out.objects("parts", parts, |part, text| {
            part.str("type", "text");
            part.text("text", text);
        }),
    }
}

fn write_assistant(out: &mut Object<'_>, invocation_id: &InvocationId, candidate: &Candidate) {
    out.str("invocationId", invocation_id.as_str());
    out.text("text", &candidate.text());
    out.object("model", |model| {
        model.str("provider", &candidate.model.provider);
        model.str("model", &candidate.model.model);
    });
    out.str("finishReason", candidate.finish.as_str());
    if let Some(usage) = &candidate.usage {
        out.object("usage", |out| write_usage(out, usage));
    }
    out.objects("toolCalls", candidate.tool_calls(), write_tool_call);
}

fn write_tool_call(out: &mut Object<'_>, call: &ToolCall) {
    out.str("callId", call.call_id.as_str());
    out.str("name", &call.name);
    match &call.input {
        ToolInput::Json(input) => out.json("input", input),
        ToolInput::Malformed(text) => out.text("input", text),
    }
}

fn write_usage(out: &mut Object<'_>, usage: &Usage) {
    out.int("inputTokens", usage.input);
    out.int("outputTokens", usage.output);
    out.int("totalTokens", usage.total);
    out.int("cachedTokens", usage.cached);
    out.int("cacheWriteTokens", usage.cache_write);
    out.int("reasoningTokens", usage.reasoning);
    if let Some(nano) = usage.cost_nano_usd {
        out.json("costUsd", &Json::from_trusted(nano_usd(nano)));
    }
}

/// Billionths of a dollar as a JSON number of dollars.
pub fn nano_usd(nano: i64) -> String {
    let sign = if nano < 0 { "-" } else { "" };
    let (whole, fraction) = (nano.unsigned_abs() / 1_000_000_000, nano.unsigned_abs() % 1_000_000_000);
    let number = format!("{sign}{whole}.{fraction:09}");
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_tool_outcome(out: &mut Object<'_>, outcome: &ToolOutcome) {
    match outcome {
        ToolOutcome::Completed { output } => out.json("output", output),
        ToolOutcome::Failed { code, message } => out.object("error", |error| {
            error.str("code", code);
            error.str("message", message);
        }),
    }
}

fn write_settled(out: &mut Object<'_>, outcome: Option<&EffectOutcome>) {
    match outcome {
        None => out.flag("retry", true),
        Some(EffectOutcome::Tool(ToolOutcome::Completed { output })) => out.json("value", output),
        Some(EffectOutcome::Tool(ToolOutcome::Failed { message, .. })) => out.str("error", message),
        Some(
            EffectOutcome::Model(_)
            | EffectOutcome::Summary { .. }
            | EffectOutcome::Asked { .. }
            | EffectOutcome::Steer { .. },
        ) => out.str("error", "a model call cannot be settled"),
    }
}

fn write_edit(out: &mut Object<'_>, edit: &Edit) {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    out.int("keep", count(edit.keep));
    out.value("entries", &Value::Array(edit.entries.iter().map(entry_to_value).collect()));
    out.int("length", count(edit.length));
}

pub(crate) fn write_workspace(out: &mut Object<'_>, event: &WorkspaceEvent) {
    match event {
        WorkspaceEvent::State { state, backend, isolation, image, network, reattach, lost, note, error } => {
            out.str("state", state.as_str());
            out.str("backend", backend);
            out.optional("isolation", isolation.as_deref());
            out.optional("image", image.as_deref());
            out.optional("network", network.as_deref());
            out.flag("reattach", *reattach);
            out.flag("lost", *lost);
            out.optional("note", note.as_deref());
            out.optional("error", error.as_deref());
        }
        WorkspaceEvent::Exec { tool, command, path, exit_code, killed, outcome, code, duration_ms } => {
            out.str("tool", tool.as_str());
            out.optional("command", command.as_deref());
            out.optional("path", path.as_deref());
            if let Some(exit_code) = exit_code {
                out.int("exitCode", *exit_code);
            }
            out.flag("killed", *killed);
            out.str("outcome", outcome.as_str());
            out.optional("code", code.as_deref());
            out.int("durationMs", *duration_ms);
        }
    }
}

/// Why a stored event cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableEvent {
    /// What is missing or wrong.
    pub problem: String,
}

impl std::fmt::Display for UnreadableEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a stored event cannot be read: {}", self.problem)
    }
}

impl std::error::Error for UnreadableEvent {}

fn unreadable(problem: &str) -> UnreadableEvent {
    UnreadableEvent { problem: problem.to_owned() }
}

fn payload_of(body: &str) -> Result<Json, UnreadableEvent> {
    member(&Json::from_trusted(body), "payload").ok_or_else(|| unreadable("it has no payload"))
}

/// What a stored `command.message` said, verbatim.
pub fn read_input(body: &str) -> Result<Input, UnreadableEvent> {
    let payload = payload_of(body)?;
    if let Some(data) = member(&payload, "data") {
        return Ok(Input::Data(data));
    }
    let value = payload.value();
    if let Some(text) = value.get("content").and_then(Value::as_text) {
        return Ok(Input::Content(text.clone()));
    }
    let parts = value.get("parts").and_then(Value::as_array).ok_or_else(|| unreadable("a message without content"))?;
    let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_text).cloned());
    Ok(Input::Parts(texts.collect()))
}

/// What a stored `transcript.updated`, `turn.cancelled` or `turn.failed` does to the transcript; `None` for a cancel
/// without a turn.
pub fn read_folding(kind: &str, body: &str) -> Result<Option<Folding>, UnreadableEvent> {
    // A transcript may have thousands of edits, so of the envelope, which is half of each, no value is made. It is
    // printed by this program, its payload last, and quotation marks inside its strings are escaped: the first places
    // that read so are the envelope's own members.
    let (_, rest) = body.split_once(r#","turnId":"#).ok_or_else(|| unreadable("it names no turn"))?;
    let (turn, payload) = rest.split_once(r#","payload":"#).ok_or_else(|| unreadable("it has no payload"))?;
    let turn = turn.strip_prefix('"').and_then(|turn| turn.split_once('"'));
    let Some(turn) = turn.map(|(turn, _)| TurnId::from_trusted(turn)) else { return Ok(None) };
    if kind != TRANSCRIPT_UPDATED {
        return Ok(Some(Folding::Undo(turn)));
    }
    let payload = payload.strip_suffix('}').ok_or_else(|| unreadable("it does not end"))?;
    let payload = Document::parse(payload).map_err(|error| unreadable(&error.to_string()))?;
    Ok(Some(Folding::Edit(turn, read_edit(payload.root())?)))
}

fn read_edit(payload: Node<'_>) -> Result<Edit, UnreadableEvent> {
    let count = |name: &str| {
        let number = payload.get(name).and_then(Node::as_i64).and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| unreadable("an edit without its counts"))
    };
    let entries =
        payload.get("entries").and_then(Node::elements).ok_or_else(|| unreadable("an edit without entries"))?;
    let entries: Option<Vec<_>> = entries.map(|entry| entry_from_node(entry).ok()).collect();
    let entries = entries.ok_or_else(|| unreadable("a transcript entry of an unknown kind"))?;
    Ok(Edit { keep: count("keep")?, entries, length: count("length")? })
}

#[cfg(test)]
mod tests {
    use nylorun_domain::event::{Event, Payload, Source};
    use nylorun_domain::id::{EventId, SessionId, TenantId, TurnId};
    use nylorun_domain::json::Json;
    use nylorun_domain::time::Millis;
    use nylorun_domain::transcript::{Edit, Entry, Folding};

    use super::{encode, event_type, read_folding};

    #[test]
    fn an_edit_is_found_in_its_event_whatever_the_ids_look_like() {
        let edit = Edit::append(2, vec![Entry::Final { output: Json::string(r#"","payload":{"turnId":"x"}}"#) }]);
        let event = Event {
            id: EventId::from_trusted("e"),
            session_id: SessionId::from_trusted(r#"","turnId":"other","payload":{}"#),
            seq: 7,
            turn_id: Some(TurnId::from_trusted("t")),
            epoch: 1,
            time: Millis(0),
            source: Source::Loop,
            payload: Payload::TranscriptUpdated(edit.clone()),
        };
        let body = encode(&event, &TenantId::from_trusted("tn"));
        let read = read_folding(event_type(&event.payload), &body);
        assert_eq!(read, Ok(Some(Folding::Edit(TurnId::from_trusted("t"), edit))));
        assert_eq!(read_folding("turn.failed", &body), Ok(Some(Folding::Undo(TurnId::from_trusted("t")))));
        let without = encode(&Event { turn_id: None, ..event }, &TenantId::from_trusted("tn"));
        assert_eq!(read_folding("turn.cancelled", &without), Ok(None));
    }
}
