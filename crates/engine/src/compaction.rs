//! Compaction: when the conversation comes near to the window's end, or does not fit, its older part becomes a summary
//! (engine b.7).

use std::collections::VecDeque;
use std::sync::Arc;

use nylorun_domain::compaction::{ASSISTANT_MARK, SUMMARY_TASK, Trigger, USER_MARK, clip};
use nylorun_domain::json::Text;
use nylorun_domain::model::{OutputPart, Prompt, PromptItem, ToolInput, ToolResult, Window};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Entry, Input};

use crate::estimate::{CHARS_PER_TOKEN, entry_tokens, tokens};

/// Most tokens of the tail that stays as it is.
const MAX_TAIL: i64 = 20_000;
/// Output that a model without a known limit may give.
const USUAL_OUTPUT: i64 = 8_192;
/// Most tokens that are kept free for the answer.
const MAX_RESERVE: i64 = 16_384;
/// What a summary call has beside the text: its task and the turns of phrase around it.
const OVERHEAD: i64 = 1_024;
/// Least tokens of text in one summary call.
const MIN_CHUNK: i64 = 1_000;
/// Least tokens that a summary may have.
const MIN_SUMMARY: i64 = 256;

/// What a window leaves for what, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    context: i64,
    reserve: i64,
}

impl Room {
    /// The room of a model.
    pub(crate) fn of(window: Window) -> Self {
        let output = if window.output > 0 { window.output } else { USUAL_OUTPUT };
        Self { context: window.context, reserve: output.min(MAX_RESERVE).min(window.context / 4) }
    }

    /// The room of a model that says that `estimate` tokens do not fit, and otherwise says nothing of itself.
    pub(crate) fn below(estimate: i64) -> Self {
        Self::of(Window { context: estimate, output: 0 })
    }

    /// Whether a conversation of this size leaves no room for an answer.
    pub(crate) fn is_exceeded_by(self, estimate: i64) -> bool {
        estimate > self.context - self.reserve
    }

    fn tail(self) -> i64 {
        (self.context * 3 / 10).clamp(1, MAX_TAIL)
    }

    /// Most tokens of a summary: 0.8 of the reserve.
    fn summary(self) -> i64 {
        (self.reserve * 4 / 5).max(MIN_SUMMARY)
    }

    /// Most tokens of text in one summary call, beside the summary of the calls before it.
    fn chunk(self) -> i64 {
        (self.context - self.reserve - OVERHEAD - self.summary()).max(MIN_CHUNK)
    }
}

/// A compaction that is under way.
#[derive(Debug)]
pub(crate) struct Compacting {
    pub(crate) trigger: Trigger,
    pub(crate) tokens_before: i64,
    /// The summary so far: of an earlier compaction, then of the chunks that were summarized.
    summary: Option<String>,
    chunks: VecDeque<String>,
    /// How many chunks there were.
    parts: usize,
    summary_tokens: i64,
    /// What follows the summary.
    pub(crate) kept: Vec<Entry>,
    /// How many of the kept entries belong to turns before.
    pub(crate) turn_start: usize,
}

impl Compacting {
    /// What is to be done with these entries, whose turn begins at `turn_start`; `None` when nothing is old enough.
    pub(crate) fn plan(
        entries: &[&Entry],
        turn_start: usize,
        room: Room,
        trigger: Trigger,
        before: i64,
    ) -> Option<Self> {
        let cut = cut(entries, room.tail());
        let (older, tail) = entries.split_at(cut);
        let is_own_input = |at: usize| at >= turn_start && matches!(older[at], Entry::Input(_));
        let is_news = |at: usize| !is_own_input(at) && !matches!(older[at], Entry::Compaction(_) | Entry::Final { .. });
        if !(0..older.len()).any(is_news) {
            return None;
        }
        let summary = older.iter().rev().find_map(|entry| match entry {
            Entry::Compaction(compaction) => Some(compaction.summary.lossy().into_owned()),
            Entry::Input(_) | Entry::Candidate { .. } | Entry::ToolResults(_) | Entry::Final { .. } => None,
        });
        // The turn's own messages stay word for word.
        let own = (0..older.len()).filter(|at| is_own_input(*at)).map(|at| older[at]);
        let kept: Vec<Entry> = own.chain(tail.iter().copied()).cloned().map(without_size).collect();
        let chunks = chunks(older, room.chunk());
        Some(Self {
            trigger,
            tokens_before: before,
            summary,
            parts: chunks.len(),
            chunks,
            summary_tokens: room.summary(),
            kept,
            turn_start: turn_start.saturating_sub(cut),
        })
    }

    /// Which chunk is being summarized, from 1, and of how many.
    pub(crate) fn part(&self) -> (usize, usize) {
        (self.parts - self.chunks.len() + 1, self.parts)
    }

    /// The prompt that asks for the summary of the next chunk, merged into the one so far.
    pub(crate) fn prompt(&self) -> Prompt {
        let (part, parts) = self.part();
        let mut instructions = format!(
            "{SUMMARY_TASK} Write a summary with which the agent can go on without the history: what the person wants, \
             decisions, facts, names and values that matter, what was done with which result, and what is open. Keep \
             exact identifiers. Write plain text of at most {} tokens, and nothing else.",
            self.summary_tokens
        );
        if parts > 1 {
            instructions.push_str(&format!(" This is part {part} of {parts} of the history."));
        }
        let mut text = String::new();
        if let Some(summary) = &self.summary {
            text.push_str("Merge what follows into this summary of what came before:\n\n");
            text.push_str(summary);
            text.push_str("\n\n");
        }
        text.push_str("History:\n\n");
        text.push_str(self.chunks.front().map_or("", String::as_str));
        let items = vec![Arc::new(PromptItem::User(vec![text.into()]))];
        Prompt { instructions: vec![instructions], items, tools: Vec::new(), output_schema: None }
    }

    /// Takes the summary of a chunk. Answers whether more are to be summarized; `None` when the model said nothing.
    pub(crate) fn summarized(&mut self, summary: &Text) -> Option<Left> {
        let summary = summary.lossy();
        let most = usize::try_from(self.summary_tokens).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
        let summary: String = summary.trim().chars().take(most).collect();
        if summary.is_empty() {
            return None;
        }
        self.summary = Some(summary);
        self.chunks.pop_front();
        Some(if self.chunks.is_empty() { Left::Nothing } else { Left::Chunks })
    }

    /// The whole summary.
    pub(crate) fn summary(&self) -> Text {
        self.summary.as_deref().unwrap_or_default().into()
    }

    /// Estimated tokens of what the transcript will be.
    pub(crate) fn tokens_after(&self) -> i64 {
        tokens(self.summary.as_ref().map_or(0, String::len)) + self.kept.iter().map(entry_tokens).sum::<i64>()
    }
}

/// What is left to summarize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Chunks,
    Nothing,
}

/// Where the tail begins that stays: as many of the newest entries as fit, and the newest step whole in any case. It
/// never begins with tool results, and never holds an earlier summary.
fn cut(entries: &[&Entry], tail: i64) -> usize {
    let mut cut = entries.len();
    let mut used = 0;
    for (at, entry) in entries.iter().enumerate().rev() {
        used += entry_tokens(entry);
        if used > tail || matches!(entry, Entry::Compaction(_)) {
            break;
        }
        cut = at;
    }
    let begins_badly = |at: usize| matches!(entries.get(at), Some(Entry::ToolResults(_)));
    while begins_badly(cut) {
        cut += 1;
    }
    cut.min(newest_step(entries))
}

/// Where the newest step begins, when its results are there and its answer is the last before them.
fn newest_step(entries: &[&Entry]) -> usize {
    match entries {
        [.., Entry::Candidate { .. }, Entry::ToolResults(_)] => entries.len() - 2,
        _ => entries.len(),
    }
}

/// The size that was reported for the whole conversation says nothing of what is left of it.
fn without_size(entry: Entry) -> Entry {
    match entry {
        Entry::Candidate { invocation_id, mut candidate } => {
            Arc::make_mut(&mut candidate).size = None;
            Entry::Candidate { invocation_id, candidate }
        }
        Entry::Input(_) | Entry::ToolResults(_) | Entry::Compaction(_) | Entry::Final { .. } => entry,
    }
}

/// The entries as text, in pieces of at most so many tokens.
fn chunks(entries: &[&Entry], most: i64) -> VecDeque<String> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
    let mut chunks = VecDeque::new();
    let mut chunk = String::new();
    for entry in entries {
        let text = rendered(entry);
        for piece in pieces(&text, most) {
            if !chunk.is_empty() && chunk.len() + piece.len() > most {
                chunks.push_back(std::mem::take(&mut chunk));
            }
            chunk.push_str(piece);
        }
    }
    if !chunk.is_empty() {
        chunks.push_back(chunk);
    }
    chunks
}

/// A text in pieces of at most `most` bytes, never within a character.
fn pieces(mut text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while text.len() > most {
        let at = (1..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let (piece, rest) = text.split_at(at);
        pieces.push(piece);
        text = rest;
    }
    if !text.is_empty() {
        pieces.push(text);
    }
    pieces
}

/// An entry as the summarizer reads it; tool payloads and messages of the person are clipped.
fn rendered(entry: &Entry) -> String {
    match entry {
        Entry::Input(input) => format!("{USER_MARK}\n{}\n\n", clip(&input_text(input))),
        Entry::Candidate { candidate, .. } => {
            let mut text = format!("{ASSISTANT_MARK}\n{}\n", candidate.text().lossy());
            for part in &candidate.parts {
                if let OutputPart::ToolCall(call) = part {
                    let input = match &call.input {
                        ToolInput::Json(json) => clip(json.as_str()),
                        ToolInput::Malformed(text) => clip(&text.lossy()),
                    };
                    text.push_str(&format!("[call of {}]\n{input}\n", call.name));
                }
            }
            text.push('\n');
            text
        }
        Entry::ToolResults(results) => results.iter().map(rendered_result).collect(),
        Entry::Compaction(_) | Entry::Final { .. } => String::new(),
    }
}

fn input_text(input: &Input) -> String {
    match input {
        Input::Content(text) => text.lossy().into_owned(),
        Input::Data(data) => data.as_str().to_owned(),
        Input::Parts(texts) => texts.iter().map(Text::lossy).collect::<Vec<_>>().join("\n"),
    }
}

fn rendered_result(result: &ToolResult) -> String {
    let outcome = match &result.outcome {
        ToolOutcome::Completed { output } => clip(output.as_str()),
        ToolOutcome::Failed { code, message } => clip(&format!("{code}: {message}")),
    };
    format!("[result of {}]\n{outcome}\n\n", result.name)
}

#[cfg(test)]
mod tests {
    use super::{Room, pieces};
    use nylorun_domain::model::Window;

    #[test]
    fn the_constants_are_those_of_the_specification() {
        let room = Room::of(Window { context: 200_000, output: 64_000 });
        assert_eq!((room.reserve, room.tail(), room.summary()), (16_384, 20_000, 13_107));
        assert_eq!(room.chunk(), 200_000 - 16_384 - 1_024 - 13_107);
        assert!(room.is_exceeded_by(183_617) && !room.is_exceeded_by(183_616));
        let small = Room::of(Window { context: 2_000, output: 0 });
        assert_eq!((small.reserve, small.tail(), small.summary(), small.chunk()), (500, 600, 400, 1_000));
        assert_eq!(Room::below(2).tail(), 1);
    }

    #[test]
    fn pieces_never_cut_a_character() {
        assert_eq!(pieces("aäb", 2), ["a", "ä", "b"]);
        assert_eq!(pieces("", 2), Vec::<&str>::new());
    }
}
