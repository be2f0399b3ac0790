//! Text for a terminal: colours, columns, times, and other people's text without its control characters.

use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Wants attention.
    Warn,
    /// Beside the point.
    Faint,
    /// A heading.
    Strong,
    /// A name to type or to look for.
    Accent,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colours: Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    On,
    Off,
}

impl Style {
    /// Without colours, for tests.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colours: Colours::Off }
    }

    /// As standard output wants it: coloured only on a terminal, and not when `NO_COLOR` is set.
    pub(crate) fn of_stdout() -> Self {
        Self::for_terminal(&std::io::stdout())
    }

    /// As standard error wants it.
    pub(crate) fn of_stderr() -> Self {
        Self::for_terminal(&std::io::stderr())
    }

    fn for_terminal(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colours: if stream.is_terminal() && !unwanted { Colours::On } else { Colours::Off } }
    }

    /// The text in the colour of its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Warn => "33",
            Tone::Faint => "2",
            Tone::Strong => "1",
            Tone::Accent => "36",
        };
        match self.colours {
            Colours::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Colours::Off => text.to_owned(),
        }
    }
}

/// Text from elsewhere, with control characters made visible: a model, a tool or a file must not move the cursor,
/// change colours or the title, or answer for the person at the keyboard. Line feeds and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => {}
            '\u{0}'..='\u{1f}' => {
                shown.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => shown.push('␡'),
            // The C1 controls, and characters that reorder or hide what is around them.
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => shown.push('\u{fffd}'),
            _ => shown.push(character),
        }
    }
    shown
}

/// Text from elsewhere on one line of at most `width` characters, with `…` where it was cut.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    // Four bytes hold any character: what lies beyond cannot be shown, and need not be looked at.
    let head: String = text.trim().chars().take(width.saturating_mul(4) + 1).collect();
    let line = visible(&head).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= width && head.len() == text.trim().len() {
        return line;
    }
    let mut cut: String = line.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Rows in columns, two spaces apart; the last column is as long as it likes.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]], style: &Style) -> String {
    let mut widths = heading.map(|text| text.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let last = N.saturating_sub(1);
        let padded = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(at, (cell, width))| if at == last { (*cell).to_owned() } else { format!("{cell:width$}") });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = style.paint(Tone::Faint, &line(heading)) + "\n";
    for row in rows {
        text.push_str(&line(row.each_ref().map(String::as_str)));
        text.push('\n');
    }
    text
}

/// A length of time, roughly: `12 ms`, `1.2 s`, `2 min 5 s`, `3 h 2 min`.
pub(crate) fn duration(length: Duration) -> String {
    let (ms, s) = (length.as_millis(), length.as_secs());
    match s {
        0 => format!("{ms} ms"),
        1..=59 => format!("{}.{} s", s, ms % 1000 / 100),
        60..=3599 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s / 60 % 60),
    }
}

/// How long ago an ISO 8601 time was: `just now`, `5 min ago`, `3 d ago`; the text itself when it is no time.
pub(crate) fn ago(iso: &str, now: SystemTime) -> String {
    let Some(then) = millis_of_iso(iso) else { return visible(iso) };
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let seconds = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(then) / 1000;
    match seconds {
        ..10 => "just now".to_owned(),
        10..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400.. => format!("{} d ago", seconds / 86_400),
    }
}

/// Milliseconds since 1970 of a UTC time as the server prints it: `2026-01-31T12:00:00.000Z`.
pub(crate) fn millis_of_iso(iso: &str) -> Option<i64> {
    let (date, time) = iso.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let days = days_since_1970(year, month, day);
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + fraction.parse::<i64>().ok()?)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let parts: Vec<i64> = text.split(separator).map(str::parse).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}

/// Day number of a Gregorian date, by 400-year eras that begin on 1 March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        let cases = [
            ("plain é😀\n\ttext", "plain é😀\n\ttext"),
            ("\u{1b}[31mred\u{1b}]0;title\u{7}", "␛[31mred␛]0;title␇"),
            ("over\rwritten\r\n", "overwritten\n"),
            ("\u{9b}2J \u{7f}\u{0}\u{8}", "\u{fffd}2J ␡␀␈"),
            ("user\u{202e}txt.exe\u{200b}", "user\u{fffd}txt.exe\u{fffd}"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn one_line_is_one_short_line() {
        assert_eq!(one_line("  a\n  b\t c  ", 20), "a b c");
        assert_eq!(one_line("abcdefghij", 5), "abcd…");
        assert_eq!(one_line("abcde", 5), "abcde");
        assert_eq!(one_line(&"é\n".repeat(1_000_000), 5), "é é …");
        assert_eq!(one_line("a\u{1b}[0m", 20), "a␛[0m");
    }

    #[test]
    fn columns_line_up() {
        let rows = [["a".to_owned(), "é".to_owned()], ["longer".to_owned(), String::new()]];
        assert_eq!(table(["ID", "NAME"], &rows, &Style::plain()), "ID      NAME\na       é\nlonger\n");
    }

    #[test]
    fn colours_surround_and_vanish() {
        assert_eq!(Style { colours: Colours::On }.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Style::plain().paint(Tone::Bad, "x"), "x");
    }

    #[test]
    fn durations_read_well() {
        let cases =
            [(12, "12 ms"), (1_240, "1.2 s"), (59_999, "59.9 s"), (125_000, "2 min 5 s"), (10_920_000, "3 h 2 min")];
        for (ms, text) in cases {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn times_are_read_and_told() {
        for (iso, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T00:00:00.000Z", 951_782_400_000),
            ("2026-11-30T03:31:35.678Z", 1_796_009_495_678),
            ("2026-11-30T03:31:35Z", 1_796_009_495_000),
        ] {
            assert_eq!(millis_of_iso(iso), Some(ms), "{iso}");
        }
        assert_eq!(millis_of_iso("yesterday"), None);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(200_000);
        let told = [
            "1970-01-03T07:33:19.000Z",
            "1970-01-03T07:32:30.000Z",
            "1970-01-03T07:00:00.000Z",
            "1970-01-01T00:00:00.000Z",
            "soon",
        ];
        assert_eq!(told.map(|iso| ago(iso, now)), ["just now", "50 s ago", "33 min ago", "2 d ago", "soon"]);
    }
}
