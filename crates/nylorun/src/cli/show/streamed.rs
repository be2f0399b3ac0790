//! Text that is shown while a model writes it, and again when it is whole: each character once.

use nylorun_client::Delta;

/// What was shown of the model call that is being written.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    invocation_id: String,
    /// Epoch, then attempt: what is higher takes the place of what is lower.
    writer: (u64, u64),
    /// What was shown.
    shown: String,
    next_index: u64,
    /// A piece is missing, so the rest waits for the whole text.
    gap: bool,
}

/// What to print for a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Nothing: it is late, or a piece before it is missing.
    Nothing,
    /// This, after what was shown.
    More(&'a str),
    /// This, in the place of what was shown of an attempt that was given up.
    Anew(&'a str),
}

impl Streamed {
    /// Takes a piece.
    pub(super) fn piece<'a>(&mut self, delta: &'a Delta) -> Piece<'a> {
        let writer = (delta.epoch, delta.attempt);
        let same_call = self.invocation_id == delta.invocation_id;
        if same_call && writer < self.writer {
            return Piece::Nothing;
        }
        let replaces = !self.shown.is_empty();
        if !same_call || writer > self.writer {
            *self = Self { invocation_id: delta.invocation_id.clone(), writer, ..Self::default() };
        }
        let anew = replaces && self.shown.is_empty();
        if delta.index < self.next_index || self.gap {
            return Piece::Nothing;
        }
        if delta.index > self.next_index {
            self.gap = true;
            return Piece::Nothing;
        }
        self.next_index += 1;
        self.shown.push_str(&delta.text);
        if anew { Piece::Anew(&delta.text) } else { Piece::More(&delta.text) }
    }

    /// Takes the whole text of a call: what is still to be shown of it.
    pub(super) fn whole<'a>(&mut self, invocation_id: &str, text: &'a str) -> Piece<'a> {
        let streamed = std::mem::take(self);
        if streamed.shown.is_empty() || streamed.invocation_id != invocation_id {
            return if streamed.shown.is_empty() { Piece::More(text) } else { Piece::Anew(text) };
        }
        match text.strip_prefix(&streamed.shown) {
            Some(rest) => Piece::More(rest),
            None => Piece::Anew(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::delta;
    use super::*;

    #[test]
    fn pieces_are_shown_once_and_the_whole_adds_the_rest() {
        let mut streamed = Streamed::default();
        assert_eq!(streamed.piece(&delta(1, 0, "a")), Piece::More("a"));
        assert_eq!(streamed.piece(&delta(1, 1, "b")), Piece::More("b"));
        assert_eq!(streamed.piece(&delta(1, 1, "b")), Piece::Nothing);
        assert_eq!(streamed.whole("i1", "abc"), Piece::More("c"));
        assert_eq!(streamed.whole("i2", "next"), Piece::More("next"));
    }

    #[test]
    fn after_a_gap_the_whole_text_fills_in() {
        let mut streamed = Streamed::default();
        assert_eq!(streamed.piece(&delta(1, 0, "a")), Piece::More("a"));
        assert_eq!(streamed.piece(&delta(1, 2, "c")), Piece::Nothing);
        assert_eq!(streamed.piece(&delta(1, 3, "d")), Piece::Nothing);
        assert_eq!(streamed.whole("i1", "abcd"), Piece::More("bcd"));
    }

    #[test]
    fn a_later_attempt_takes_the_place_of_an_earlier_one() {
        let mut streamed = Streamed::default();
        assert_eq!(streamed.piece(&delta(1, 0, "wrong")), Piece::More("wrong"));
        assert_eq!(streamed.piece(&delta(2, 0, "right")), Piece::Anew("right"));
        assert_eq!(streamed.piece(&delta(1, 1, "late")), Piece::Nothing);
        assert_eq!(streamed.whole("i1", "right"), Piece::More(""));
    }

    #[test]
    fn a_text_that_differs_is_shown_whole() {
        let mut streamed = Streamed::default();
        assert_eq!(streamed.piece(&delta(1, 0, "abc")), Piece::More("abc"));
        assert_eq!(streamed.whole("i1", "xyz"), Piece::Anew("xyz"));
    }
}
