//! Results that fit: what a tool gave is kept whole while it is small, and as its two ends when it is not (engine b.8).

use nylorun_domain::json::{Json, Value};
use nylorun_domain::tool::ToolOutcome;

/// Largest result that is kept whole, in bytes of JSON.
const INLINE: usize = 32 * 1024;
/// What is shown of a larger one: of its beginning, and of its end.
const PREVIEW: usize = HEAD + TAIL;
const HEAD: usize = 4 * 1024;
const TAIL: usize = 1024;
/// What all results of one step may take together.
const STEP: usize = 256 * 1024;
/// A result of this size or less is always kept whole, and a larger one is not cut below it while there is room.
const NEVER_BELOW: usize = 1024;
/// What a cut result takes beside its preview.
const FRAME: usize = 256;

const NO_PLACE: &str = "The rest was not kept: there is no place for it yet.";
const NO_ROOM: &str = "Nothing of it was kept: the results of this step fill 256 KiB already.";

/// The room that is left for the results of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRoom {
    left: usize,
}

impl StepRoom {
    /// The whole room of a step.
    pub(crate) const WHOLE: Self = Self { left: STEP };

    /// Takes the room of a result that was recorded before.
    pub(crate) fn spend(&mut self, outcome: &ToolOutcome) {
        self.left = self.left.saturating_sub(match outcome {
            ToolOutcome::Completed { output } => output.as_str().len(),
            ToolOutcome::Failed { message, .. } => message.len(),
        });
    }

    /// The result as it is recorded and as the model reads it. It takes its room.
    pub(crate) fn fit(&mut self, outcome: ToolOutcome) -> ToolOutcome {
        let outcome = match outcome {
            ToolOutcome::Completed { output } => ToolOutcome::Completed { output: self.fit_output(output) },
            ToolOutcome::Failed { code, message } => ToolOutcome::Failed { code, message: fit_message(message) },
        };
        self.spend(&outcome);
        outcome
    }

    fn fit_output(self, output: Json) -> Json {
        let share = self.left.clamp(NEVER_BELOW, INLINE);
        let size = output.as_str().len();
        if size <= share {
            return output;
        }
        if self.left < NEVER_BELOW {
            return cut(size, None, NO_ROOM);
        }
        // A text is shown as itself, anything else as its JSON.
        let value = output.value();
        let text = value.as_text().map_or_else(|| output.as_str().into(), nylorun_domain::json::Text::lossy);
        // What JSON must escape takes more room than it has in the text.
        let mut shown = PREVIEW.min(share - FRAME);
        loop {
            let fitted = cut(size, Some(&ends(&text, shown)), NO_PLACE);
            if fitted.as_str().len() <= share || shown == 0 {
                return fitted;
            }
            shown /= 2;
        }
    }
}

/// `{truncated, size, preview?, dropped}`: what stands for a result that does not fit.
fn cut(size: usize, preview: Option<&str>, dropped: &str) -> Json {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let mut members = vec![("truncated", Value::from(true)), ("size", Value::from(size))];
    members.extend(preview.map(|preview| ("preview", Value::from(preview))));
    members.push(("dropped", Value::from(dropped)));
    Value::object(members).to_json()
}

/// Four parts of the beginning and one of the end, together `shown` bytes or a little less, in whole characters.
fn ends(text: &str, shown: usize) -> String {
    let tail = shown / 5;
    let head_end = text.floor_char_boundary(shown - tail);
    let tail_start = text.ceil_char_boundary(text.len().saturating_sub(tail)).max(head_end);
    let left_out = tail_start - head_end;
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head_end], &text[tail_start..])
}

fn fit_message(message: String) -> String {
    if message.len() <= HEAD {
        return message;
    }
    format!("{}…", &message[..message.floor_char_boundary(HEAD)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(json: &str) -> ToolOutcome {
        ToolOutcome::Completed { output: Json::from_trusted(json) }
    }

    fn text_of(len: usize) -> ToolOutcome {
        completed(&format!("\"{}\"", "a".repeat(len - 2)))
    }

    fn output(outcome: &ToolOutcome) -> Value {
        match outcome {
            ToolOutcome::Completed { output } => output.value(),
            ToolOutcome::Failed { .. } => panic!("{outcome:?}"),
        }
    }

    fn len(outcome: &ToolOutcome) -> usize {
        match outcome {
            ToolOutcome::Completed { output } => output.as_str().len(),
            ToolOutcome::Failed { message, .. } => message.len(),
        }
    }

    #[test]
    fn a_result_of_32_kib_is_whole_and_a_larger_one_shows_its_ends() {
        let mut room = StepRoom::WHOLE;
        assert_eq!(room.fit(text_of(INLINE)), text_of(INLINE));
        assert_eq!(room, StepRoom { left: STEP - INLINE });
        let text = format!("{}{}é{}", "a".repeat(HEAD - 1), "é".repeat(20_000), "b".repeat(TAIL - 1));
        let fitted = room.fit(completed(&format!("\"{text}\"")));
        let value = output(&fitted);
        let preview = value.get("preview").and_then(Value::as_str).unwrap();
        let (head, rest) = preview.split_once("\n[… ").unwrap();
        let (left_out, tail) = rest.split_once(" bytes left out …]\n").unwrap();
        assert_eq!((head, tail), ("a".repeat(HEAD - 1).as_str(), "b".repeat(TAIL - 1).as_str()));
        assert_eq!(left_out.parse(), Ok(2 * 20_001));
        assert_eq!(value.get("truncated"), Some(&Value::from(true)));
        assert_eq!(value.get("size").and_then(Value::as_i64), Some(i64::try_from(text.len() + 2).unwrap()));
        assert_eq!(value.get("dropped").and_then(Value::as_str), Some(NO_PLACE));
        assert_eq!(room, StepRoom { left: STEP - INLINE - len(&fitted) });
    }

    #[test]
    fn a_document_is_shown_as_its_json() {
        let document = format!("[{}1]", "10,".repeat(20_000));
        let value = output(&StepRoom::WHOLE.clone().fit(completed(&document)));
        let preview = value.get("preview").and_then(Value::as_str).unwrap();
        assert!(preview.starts_with("[10,10,") && preview.ends_with("10,1]"), "{preview}");
    }

    #[test]
    fn a_step_never_takes_much_more_than_its_room() {
        let mut room = StepRoom::WHOLE;
        let fitted: Vec<_> = (0..40).map(|_| room.fit(text_of(INLINE))).collect();
        let whole = fitted.iter().filter(|outcome| **outcome == text_of(INLINE)).count();
        assert_eq!(whole, STEP / INLINE);
        for stub in &fitted[whole..] {
            assert!(len(stub) <= 512, "{stub:?}");
            assert_eq!(output(stub).get("dropped").and_then(Value::as_str), Some(NO_ROOM));
        }
        assert_eq!(room.fit(text_of(NEVER_BELOW)), text_of(NEVER_BELOW));
    }

    #[test]
    fn what_is_left_of_the_room_is_used() {
        let mut room = StepRoom { left: 2_000 };
        let fitted = room.fit(text_of(INLINE));
        assert!(output(&fitted).get("preview").is_some() && len(&fitted) <= 2_000, "{fitted:?}");
        // What must be escaped is shown in a smaller part.
        let fitted = StepRoom { left: NEVER_BELOW }.fit(completed(&format!("\"{}\"", "\\u0001".repeat(9_000))));
        assert!(output(&fitted).get("preview").is_some() && len(&fitted) <= NEVER_BELOW, "{fitted:?}");
    }

    #[test]
    fn a_recorded_result_takes_its_room_again() {
        let mut room = StepRoom::WHOLE;
        let fitted = room.fit(text_of(100_000));
        let mut replayed = StepRoom::WHOLE;
        replayed.spend(&fitted);
        assert_eq!(replayed, room);
    }

    #[test]
    fn a_long_failure_is_cut() {
        let fitted = StepRoom::WHOLE.clone().fit(ToolOutcome::failed("http.status", "é".repeat(5_000)));
        assert_eq!(fitted, ToolOutcome::failed("http.status", format!("{}…", "é".repeat(HEAD / 2))));
    }
}
