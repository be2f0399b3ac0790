//! Reading what a run starts from: a snapshot of the row, the journal of its turn, and the transcript folded from the
//! record.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use nylorun_domain::change::EffectRow;
use nylorun_domain::checkpoint::Checkpoint;
use nylorun_domain::effect::EffectStatus;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::segment::SegmentInput;
use nylorun_domain::session::Session;
use nylorun_domain::transcript::{Fold, Folding, Input, Line};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::run::{RecordedOutcome, RunWorkspace};
use nylorun_store::{Snapshot, Store, StoreError};
use nylorun_wire::event::read_input;
use nylorun_wire::transcript::entries_from_lines;
use tokio::task::JoinError;

use crate::transcripts::{History, may_have_snapshot};

/// Why a run cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    /// The store did not answer: try again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored cannot be continued by this build: the turn fails.
    #[error("{0}")]
    Incompatible(String),
}

/// Parsed manifests by hash. A hash never means another manifest, so nothing here goes stale.
#[derive(Debug, Default)]
pub(crate) struct Manifests(Mutex<HashMap<String, Arc<AgentManifest>>>);

impl Manifests {
    const KEPT: usize = 256;

    pub(crate) async fn get(&self, store: &Store, hash: &str) -> Result<Arc<AgentManifest>, LoadError> {
        if let Some(known) = self.known(hash) {
            return Ok(known);
        }
        let document = store.manifest_get(hash).await?;
        let document = document.ok_or_else(|| LoadError::Incompatible(format!("manifest {hash} is not stored")))?;
        let manifest = AgentManifest::read_pinned(&document)
            .map_err(|problems| LoadError::Incompatible(format!("manifest {hash}: {}", problems.to_json_text())))?;
        let manifest = Arc::new(manifest);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= Self::KEPT {
            kept.clear();
        }
        kept.insert(hash.to_owned(), Arc::clone(&manifest));
        Ok(manifest)
    }

    fn known(&self, hash: &str) -> Option<Arc<AgentManifest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }
}

/// What begins the active segment: the turn's message, or the checkpoint that the segment before left.
pub(crate) async fn input(store: &Store, session: &Session) -> Result<SegmentInput, LoadError> {
    if session.segment == 0 {
        return message(store, session).await.map(SegmentInput::Message);
    }
    let checkpoint = store.checkpoint_get(&session.id).await?;
    let fits = |checkpoint: &Checkpoint| {
        checkpoint.segment == session.segment && session.active_turn_id.as_ref() == Some(&checkpoint.turn_id)
    };
    let checkpoint = checkpoint
        .filter(fits)
        .ok_or_else(|| LoadError::Incompatible(format!("the checkpoint of segment {} is missing", session.segment)))?;
    Ok(SegmentInput::Resume { state: checkpoint.state, answers: checkpoint.answers })
}

async fn message(store: &Store, session: &Session) -> Result<Input, LoadError> {
    let seq = session.input_seq.ok_or_else(|| LoadError::Incompatible("the turn has no input".to_owned()))?;
    let event = store.event_get(&session.id, seq).await?;
    let event = event.ok_or_else(|| LoadError::Incompatible(format!("event {seq} of the turn's input is missing")))?;
    read_input(&event.body).map_err(|error| LoadError::Incompatible(error.to_string()))
}

/// The model's history before the segment, folded from the record.
pub(crate) async fn transcript(store: &Store, session: &Session) -> Result<History, LoadError> {
    let (mut fold, from) = begin_fold(store, session).await?;
    let mut unsaved = 0;
    let take = |folding: Folding| {
        unsaved += 1;
        fold.take(folding).map_err(|error| LoadError::Incompatible(error.to_string()))
    };
    store.event_transcript(&session.id, from, take).await?;
    Ok(History { lines: Arc::new(fold.into_lines()), unsaved })
}

/// Where the fold begins: at the session's snapshot, if there is one, or where its history does.
async fn begin_fold(store: &Store, session: &Session) -> Result<(Fold, i64), LoadError> {
    let from = session.history_from;
    let may_have_one = may_have_snapshot(session.head - from);
    let snapshot = if may_have_one { store.snapshot_get(&session.id, from).await? } else { None };
    Ok(match snapshot {
        Some(Snapshot { upto, entries }) => (read_snapshot(entries).await?.into(), upto + 1),
        None => (Fold::default(), from),
    })
}

/// Reads a snapshot in two halves at once: it may hold thousands of entries, and is all that the turn waits for.
async fn read_snapshot(entries: Arc<str>) -> Result<Vec<Line>, LoadError> {
    let middle = entries.len() / 2;
    let middle = entries.as_bytes()[middle..].iter().position(|byte| *byte == b'\n').map_or(0, |at| middle + at + 1);
    let second = Arc::clone(&entries);
    let read = |lines: &str| -> Result<Vec<Line>, LoadError> {
        let read = entries_from_lines(lines).map_err(|error| LoadError::Incompatible(error.to_string()))?;
        Ok(read.into_iter().map(Line::from).collect())
    };
    let first = tokio::task::spawn_blocking(move || read(&entries[..middle]));
    let second = tokio::task::spawn_blocking(move || read(&second[middle..]));
    let failed = |error: JoinError| LoadError::Incompatible(error.to_string());
    let (mut lines, second) = (first.await.map_err(failed)??, second.await.map_err(failed)??);
    lines.extend(second);
    Ok(lines)
}

/// The outcomes of the active segment, to be replayed.
pub(crate) fn outcomes(rows: &[EffectRow], segment: u32) -> Vec<RecordedOutcome> {
    let completed = rows.iter().filter(|row| row.segment == segment && row.status == EffectStatus::Completed);
    let recorded = completed.filter_map(|row| {
        Some(RecordedOutcome {
            effect_id: row.id.clone(),
            request_hash: row.request_hash.clone(),
            outcome: row.outcome.clone()?,
        })
    });
    recorded.collect()
}

/// The workspace that the session uses.
pub(crate) fn workspace(store: &Store, session: &Session) -> Option<RunWorkspace> {
    let spec = session.workspace.clone()?;
    let owner = session.workspace_owner().clone();
    Some(RunWorkspace { key: WorkspaceKey::of_session(store.tenant(), &owner), owner, spec })
}
