//! Time as the store keeps it: whole milliseconds since 1970, UTC.

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 86_400_000;

impl Millis {
    /// This time and `ms` more.
    #[must_use]
    pub fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The beginning of its day, UTC.
    #[must_use]
    pub fn day_start(self) -> Self {
        Self(self.0.div_euclid(DAY_MS) * DAY_MS)
    }

    /// The beginning of its month, UTC.
    #[must_use]
    pub fn month_start(self) -> Self {
        Self(month_start(self.0.div_euclid(DAY_MS)) * DAY_MS)
    }

    /// ISO 8601 with milliseconds, UTC: `2026-11-30T03:21:35.000Z` (api 4.1).
    pub fn to_iso(self) -> String {
        let days = self.0.div_euclid(DAY_MS);
        let in_day = self.0.rem_euclid(DAY_MS);
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second, ms) =
            (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60, in_day % 1_000);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// The day number of the first day of that day's month.
fn month_start(days: i64) -> i64 {
    let (_, _, day) = civil_from_days(days);
    days - (day - 1)
}

/// The Gregorian date of a day number counted from 1970-01-01, by 400-year eras that begin on 1 March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::Millis;

    #[test]
    fn days_and_months_begin_in_utc() {
        for (ms, day, month) in [
            (0, "1970-01-01", "1970-01-01"),
            (-1, "1969-12-31", "1969-12-01"),
            (951_782_400_000, "2000-02-29", "2000-02-01"),
            (1_796_009_495_678, "2026-11-30", "2026-11-01"),
            (4_107_542_399_999, "2100-02-28", "2100-02-01"),
        ] {
            assert_eq!(Millis(ms).day_start().to_iso(), format!("{day}T00:00:00.000Z"));
            assert_eq!(Millis(ms).month_start().to_iso(), format!("{month}T00:00:00.000Z"));
        }
    }

    #[test]
    fn prints_known_times() {
        for (ms, iso) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_009_495_678, "2026-11-30T03:31:35.678Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(Millis(ms).to_iso(), iso);
        }
    }
}
