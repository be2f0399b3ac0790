//! What a run starts from, on its way to a harness and there (engine a.3).

use std::sync::Arc;

use nylorun_domain::id::TenantId;
use nylorun_domain::segment::SegmentInput;
use nylorun_domain::transcript::{Entry, Line};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::run::{RunWorkspace, TurnStart};
use nylorun_wire::harness::effect::EffectScope;
use nylorun_wire::harness::lease::{Leased, RunGrant};
use nylorun_wire::harness::shape::{JsonObject, Malformed};
use nylorun_wire::harness::start::{
    self as form, Checkpoint, Engines, RunOptions, RunRouting, RunSandbox, StartKind, TranscriptAt, YieldLimits,
    read_manifest,
};

/// Where the transcript of a segment stands. Only an empty one has a place that says so; the others are named by the
/// epoch, which no two takes of a session share.
pub(crate) fn cursor(start: &TurnStart) -> i64 {
    if start.transcript.is_empty() { EMPTY } else { start.epoch }
}

/// The cursor of an empty transcript.
pub(crate) const EMPTY: i64 = -1;

/// To which turn the effects of a run belong.
pub(crate) fn scope(start: &TurnStart) -> EffectScope {
    EffectScope {
        session_id: start.session_id.clone(),
        turn_id: start.turn_id.clone(),
        agent_id: start.agent_id.clone(),
        manifest_hash: start.manifest.hash.clone(),
        segment: start.segment,
    }
}

/// A run as it is handed over. The transcript stays: the harness reads it.
pub(crate) fn leased(run_id: &str, start: &TurnStart) -> Leased {
    let run = RunGrant {
        run_id: run_id.to_owned(),
        session_id: start.session_id.clone(),
        turn_id: start.turn_id.clone(),
        epoch: start.epoch,
        token: None,
        token_expires_at: None,
    };
    let kind = match &start.input {
        SegmentInput::Resume { answers, .. } if !answers.is_empty() => StartKind::Answer,
        SegmentInput::Message(_) | SegmentInput::Resume { .. } => StartKind::Turn,
    };
    let manifest = JsonObject(start.manifest.document.clone());
    let sandbox = start.workspace.as_ref().map(|workspace| RunSandbox {
        owner_id: workspace.owner.clone(),
        sandbox_id: None,
        spec: Some(workspace.spec.clone()),
        environment: None,
    });
    let engine = Engines::ours();
    let checkpoint = Checkpoint {
        engine_version: engine.agent.clone(),
        manifest_hash: start.manifest.hash.clone(),
        session_id: start.session_id.clone(),
        agent_id: start.agent_id.clone(),
        turn_id: start.turn_id.clone(),
        segment: start.segment,
        input: start.input.clone(),
    };
    let yield_after = YieldLimits { steps: Some(start.yield_after.steps), ms: Some(start.yield_after.ms) };
    let input = form::TurnStart {
        kind,
        engine,
        manifest: manifest.clone(),
        checkpoint,
        session_tools: None,
        outcomes: start.outcomes.clone(),
        transcript: TranscriptAt { cursor: cursor(start) },
        options: RunOptions { yield_after: Some(yield_after), flow_limits: None, fixture_model: false },
        routing: RunRouting { root_manifest: manifest, mcp_snapshot: None, sandbox },
    };
    Leased { run, input }
}

/// What the run starts from, in the harness: `transcript` was read beside it.
///
/// # Errors
/// The checkpoint was made by another engine, or does not fit its manifest or its grant.
pub(crate) fn started(leased: Leased, tenant: &TenantId, transcript: Vec<Entry>) -> Result<TurnStart, Malformed> {
    let Leased { run, input } = leased;
    let checkpoint = input.checkpoint;
    let ours = Engines::ours().agent;
    if checkpoint.engine_version != ours {
        let problem = format!("must be {ours:?}, the engine of this harness");
        return Err(Malformed::new(problem).within("checkpoint.engineVersion"));
    }
    if (&checkpoint.session_id, &checkpoint.turn_id) != (&run.session_id, &run.turn_id) {
        return Err(Malformed::new("is of another turn than the grant").within("checkpoint"));
    }
    let manifest = read_manifest(&input.manifest)?;
    if manifest.hash != checkpoint.manifest_hash {
        return Err(Malformed::new("is not the hash of the manifest").within("checkpoint.manifestHash"));
    }
    let workspace = input.routing.sandbox.and_then(|sandbox| {
        let key = WorkspaceKey::of_session(tenant, &sandbox.owner_id);
        sandbox.spec.map(|spec| RunWorkspace { owner: sandbox.owner_id, key, spec })
    });
    Ok(TurnStart {
        session_id: run.session_id,
        agent_id: checkpoint.agent_id,
        turn_id: run.turn_id,
        segment: checkpoint.segment,
        epoch: run.epoch,
        manifest: Arc::new(manifest),
        input: checkpoint.input,
        yield_after: YieldLimits::or_default(input.options.yield_after),
        transcript: Arc::new(transcript.into_iter().map(Line::from).collect()),
        outcomes: input.outcomes,
        workspace,
    })
}
