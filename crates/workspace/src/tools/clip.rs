//! Text cut to the lengths that the tools promise, counted in UTF-16 units (sandbox-and-definitions a3).

use nylorun_domain::json::utf16_len;

/// Longest output of one stream of a command.
const MAX_STREAM: usize = 30_000;
/// What is kept at each end of a longer one.
const KEPT_END: usize = MAX_STREAM / 2;
/// Longest line that `read` and `grep` show.
const MAX_LINE: usize = 2_000;

/// The first `max` UTF-16 units of `text`, and whether that is less than all. A pair is never split.
pub(crate) fn first_units(text: &str, max: usize) -> (&str, Cut) {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > max {
            return (&text[..at], Cut::Yes);
        }
    }
    (text, Cut::No)
}

/// Whether something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Yes,
    No,
}

/// The last `max` UTF-16 units of `text`.
fn last_units(text: &str, max: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices().rev() {
        units += c.len_utf16();
        if units > max {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Appends a line of a file, cut after 2,000 units with an ellipsis.
pub(crate) fn push_line_text(line: &str, out: &mut String) {
    let (shown, cut) = first_units(line, MAX_LINE);
    out.push_str(shown);
    if cut == Cut::Yes {
        out.push('…');
    }
}

/// Collects one output stream of a command in bounded memory: all of a short one, both ends of a long one.
#[derive(Debug, Default)]
pub(crate) struct StreamClip {
    /// The beginning, at most [`MAX_STREAM`] units.
    head: String,
    head_units: usize,
    /// What came after the head; trimmed now and then to its end.
    tail: String,
    total_units: usize,
    /// Bytes at the end of what came so far that may be the beginning of a character.
    pending: Vec<u8>,
}

impl StreamClip {
    /// When the tail is trimmed, in bytes.
    const TRIM_AT: usize = 512 * 1024;

    /// Takes bytes; those that are not UTF-8 become U+FFFD.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.pending).as_slice(), bytes].concat();
            &joined[..]
        };
        let complete = bytes.len() - incomplete_tail(bytes);
        self.push_text(&String::from_utf8_lossy(&bytes[..complete]));
        self.pending = bytes[complete..].to_vec();
    }

    fn push_text(&mut self, text: &str) {
        self.total_units += utf16_len(text);
        let mut rest = text;
        if self.tail.is_empty() {
            let (fits, _) = first_units(text, MAX_STREAM - self.head_units);
            self.head.push_str(fits);
            self.head_units += utf16_len(fits);
            rest = &text[fits.len()..];
        }
        self.tail.push_str(rest);
        if self.tail.len() > Self::TRIM_AT {
            self.tail = last_units(&self.tail, KEPT_END).to_owned();
        }
    }

    /// The stream as the tool shows it.
    pub(crate) fn finish(mut self) -> (String, Cut) {
        let pending = std::mem::take(&mut self.pending);
        self.push_text(&String::from_utf8_lossy(&pending));
        if self.total_units <= MAX_STREAM {
            return (self.head + &self.tail, Cut::No);
        }
        let (head, _) = first_units(&self.head, KEPT_END);
        let last: String;
        let tail = if utf16_len(&self.tail) >= KEPT_END {
            last_units(&self.tail, KEPT_END)
        } else {
            last = self.head.clone() + &self.tail;
            last_units(&last, KEPT_END)
        };
        let left_out = self.total_units - utf16_len(head) - utf16_len(tail);
        (format!("{head}\n[… {left_out} characters left out …]\n{tail}"), Cut::Yes)
    }
}

/// How many bytes at the end of `bytes` begin a character that is not complete.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    for at in (from..bytes.len()).rev() {
        let needed = match bytes[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        let present = bytes.len() - at;
        return if present < needed { present } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(chunks: &[&[u8]]) -> (String, Cut) {
        let mut clip = StreamClip::default();
        for chunk in chunks {
            clip.push(chunk);
        }
        clip.finish()
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        assert_eq!(clipped(&[]), (String::new(), Cut::No));
        assert_eq!(clipped(&[b"a", b"b"]), ("ab".to_owned(), Cut::No));
        let exact = "x".repeat(30_000);
        assert_eq!(clipped(&[exact.as_bytes()]), (exact, Cut::No));
    }

    #[test]
    fn a_long_stream_keeps_both_ends_and_counts_what_is_missing() {
        let text = "a".repeat(15_000) + "bb" + &"c".repeat(15_000);
        let expected = format!("{}\n[… 2 characters left out …]\n{}", "a".repeat(15_000), "c".repeat(15_000));
        assert_eq!(clipped(&[text.as_bytes()]), (expected.clone(), Cut::Yes));
        let bytewise: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(clipped(&bytewise), (expected, Cut::Yes));
    }

    #[test]
    fn units_are_utf16_and_pairs_stay_whole() {
        // 7,500 pairs are 15,000 units; one letter more at the front moves every pair off the border.
        let text = format!("a{}z", "😀".repeat(20_000));
        let (shown, cut) = clipped(&[text.as_bytes()]);
        let expected = format!(
            "a{}\n[… {} characters left out …]\n{}z",
            "😀".repeat(7_499),
            40_002 - 14_999 - 14_999,
            "😀".repeat(7_499)
        );
        assert_eq!((shown, cut), (expected, Cut::Yes));
    }

    #[test]
    fn a_flood_stays_in_bounded_memory() {
        let mut clip = StreamClip::default();
        let chunk = "y\n".repeat(32 * 1024);
        for _ in 0..200 {
            clip.push(chunk.as_bytes());
            assert!(clip.tail.capacity() <= 4 * StreamClip::TRIM_AT, "{}", clip.tail.capacity());
        }
        let total = 200 * chunk.len();
        let (shown, cut) = clip.finish();
        let half = "y\n".repeat(7_500);
        let expected = format!("{half}\n[… {} characters left out …]\n{half}", total - 30_000);
        assert_eq!((shown, cut), (expected, Cut::Yes));
    }

    #[test]
    fn characters_split_between_chunks_are_joined_and_bad_bytes_are_replaced() {
        let text = "é€😀";
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(clipped(&[left, right]), (text.to_owned(), Cut::No));
        }
        assert_eq!(clipped(&[b"a\xff\xe2\x82"]), ("a\u{fffd}\u{fffd}".to_owned(), Cut::No));
        assert_eq!(clipped(&[b"\xe2", b"A"]), ("\u{fffd}A".to_owned(), Cut::No));
    }

    #[test]
    fn a_line_is_cut_after_two_thousand_units() {
        let shown = |line: &str| {
            let mut out = String::new();
            push_line_text(line, &mut out);
            out
        };
        assert_eq!(shown(&"x".repeat(2_000)), "x".repeat(2_000));
        assert_eq!(shown(&"x".repeat(2_001)), "x".repeat(2_000) + "…");
        assert_eq!(shown(&format!("x{}", "😀".repeat(1_000))), format!("x{}…", "😀".repeat(999)));
    }
}
