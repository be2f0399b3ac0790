//! What a compaction does to a run: when it begins, its summary calls, its end (engine b.6, rules 3 and 5; engine b.7).

use std::sync::Arc;

use nylorun_domain::compaction::{Compacted, Compaction, Trigger};
use nylorun_domain::effect::{Effect, EffectKind, EffectOutcome, EffectRequest};
use nylorun_domain::model::{ModelFailureCode, ModelOutcome, Window};
use nylorun_domain::transcript::{Entry, Line};

use crate::compaction::{Compacting, Left, Room};
use crate::estimate::entry_tokens;
use crate::run::{Overflow, Phase, Run, failed, model_code};

impl Run {
    /// Begins a compaction when the conversation leaves no room for an answer. Answers whether it did.
    pub(crate) fn compact_at_threshold(&mut self) -> bool {
        let estimate = self.estimate();
        match self.window().map(Room::of) {
            Some(room) if room.is_exceeded_by(estimate) => self.compact(Trigger::Threshold, room, estimate),
            Some(_) | None => false,
        }
    }

    /// Begins a compaction when the model said that the conversation does not fit, once a step. Answers whether it did.
    pub(crate) fn compact_after(&mut self, failure: ModelFailureCode) -> bool {
        if failure != ModelFailureCode::ContextOverflow || self.overflow == Overflow::Compacted {
            return false;
        }
        self.overflow = Overflow::Compacted;
        let estimate = self.estimate();
        let room = self.window().map_or(Room::below(estimate), Room::of);
        self.compact(Trigger::Overflow, room, estimate)
    }

    /// The tokens of the conversation: as the last answer's usage reported them, and an estimate of what came since.
    fn estimate(&self) -> i64 {
        let mut later = 0;
        for entry in self.history.entries().rev() {
            if let Entry::Candidate { candidate, .. } = entry
                && let Some(size) = candidate.size
            {
                return size + later;
            }
            later += entry_tokens(entry);
        }
        self.conversation.frame_tokens() + later
    }

    /// The window of the model that answered last.
    fn window(&self) -> Option<Window> {
        self.history.entries().rev().find_map(|entry| match entry {
            Entry::Candidate { candidate, .. } => candidate.window,
            Entry::Input(_) | Entry::ToolResults(_) | Entry::Compaction(_) | Entry::Final { .. } => None,
        })
    }

    fn compact(&mut self, trigger: Trigger, room: Room, estimate: i64) -> bool {
        let entries: Vec<&Entry> = self.history.entries().collect();
        let planned = Compacting::plan(&entries, self.history.turn_start(), room, trigger, estimate);
        match planned {
            Some(compacting) => {
                self.want_summary(Box::new(compacting));
                true
            }
            None => false,
        }
    }

    fn want_summary(&mut self, compacting: Box<Compacting>) {
        let (part, parts) = compacting.part();
        let invocation_id = self.scope.summary_id(self.step + 1, compacting.trigger, part);
        let id = self.scope.effect_id(EffectKind::Model, &invocation_id);
        let prompt = compacting.prompt();
        let request_hash = self.scope.summary_hash(&id, &invocation_id, &prompt, (part, parts));
        let request = EffectRequest::Summary(Arc::new(prompt));
        self.phase = Phase::Summary { effect_id: id.clone(), compacting };
        self.wants = vec![Effect { id, invocation_id, request, request_hash }];
    }

    /// Takes the answer to the open summary call.
    pub(crate) fn summary_answered(&mut self, outcome: ModelOutcome) -> EffectOutcome {
        self.wants.clear();
        let without_result = |outcome| EffectOutcome::Summary { outcome, compacted: None };
        let candidate = match outcome {
            ModelOutcome::Completed(candidate) => candidate,
            ModelOutcome::Failed(failure) => {
                self.end(failed(&model_code(failure.code), failure.message.clone()));
                return without_result(ModelOutcome::Failed(failure));
            }
        };
        let text = candidate.text();
        let outcome = ModelOutcome::Completed(candidate);
        let Phase::Summary { compacting, .. } = &mut self.phase else { return without_result(outcome) };
        match compacting.summarized(&text) {
            None => {
                let message = "The model's summary of the older conversation is empty.";
                self.end(failed(&model_code(ModelFailureCode::InvalidOutput), message));
                without_result(outcome)
            }
            Some(Left::Chunks) => {
                self.want_next_summary();
                without_result(outcome)
            }
            Some(Left::Nothing) => {
                let compacted = self.finish_compaction();
                EffectOutcome::Summary { outcome, compacted }
            }
        }
    }

    /// Takes the compaction out of the phase; the step that follows puts another phase in its place.
    fn take_compacting(&mut self) -> Option<Box<Compacting>> {
        match std::mem::replace(&mut self.phase, Phase::idle()) {
            Phase::Summary { compacting, .. } => Some(compacting),
            other @ (Phase::Model { .. } | Phase::Tools(_) | Phase::Ended(_)) => {
                self.phase = other;
                None
            }
        }
    }

    fn want_next_summary(&mut self) {
        if let Some(compacting) = self.take_compacting() {
            self.want_summary(compacting);
        }
    }

    /// The summary and the kept entries become the transcript, and the step begins that made the compaction necessary.
    fn finish_compaction(&mut self) -> Option<Compacted> {
        let compacting = self.take_compacting()?;
        let compacted = Compacted {
            trigger: compacting.trigger,
            tokens_before: compacting.tokens_before,
            tokens_after: self.conversation.frame_tokens() + compacting.tokens_after(),
        };
        let summary = Entry::Compaction(Compaction { summary: compacting.summary(), compacted });
        let turn_start = 1 + compacting.turn_start;
        let lines: Vec<Line> = std::iter::once(summary).chain(compacting.kept).map(Line::from).collect();
        self.conversation.replace(&lines);
        self.history.replace(lines, turn_start);
        self.call_ids.forget_some();
        self.begin_step();
        Some(compacted)
    }
}
