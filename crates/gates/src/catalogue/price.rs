//! What tokens cost.

use nylorun_domain::check::{Place, ProblemCode};
use nylorun_domain::model::Usage;

use super::file::optional;

/// Prices of a model. A file gives US dollars per million tokens; they are kept as trillionths of a dollar per token,
/// whole numbers, so that sums are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    input: i64,
    output: i64,
    /// Input read from the cache; like input when the file says nothing.
    cache_read: Option<i64>,
    /// Input written to the cache; like input when the file says nothing.
    cache_write: Option<i64>,
}

/// No million tokens of any model cost more US dollars than this; what is larger is a slip of the pen, and would
/// overflow sums.
const MAX_DOLLARS_PER_MILLION: f64 = 1e6;

impl Price {
    /// What this usage costs, in billionths of a US dollar, rounded up.
    pub(super) fn of(self, usage: &Usage) -> i64 {
        let lines = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cached, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
        ];
        let pico: i128 = lines.into_iter().map(|(tokens, price)| i128::from(tokens.max(0)) * i128::from(price)).sum();
        i64::try_from((pico + 999) / 1_000).unwrap_or(i64::MAX)
    }

    pub(super) fn read(place: Place<'_>) -> Option<Self> {
        let object = place.object()?;
        let input = object.required("input", pico_per_token);
        let output = object.required("output", pico_per_token);
        let cache_read = optional(&object, "cacheRead", pico_per_token);
        let cache_write = optional(&object, "cacheWrite", pico_per_token);
        object.finish();
        Some(Self { input: input?, output: output?, cache_read, cache_write })
    }
}

fn pico_per_token(place: Place<'_>) -> Option<i64> {
    let dollars_per_million = place.number()?;
    if dollars_per_million < 0.0 {
        place.problem(ProblemCode::TooSmall, "Too small: expected number to be >=0");
        return None;
    }
    if dollars_per_million > MAX_DOLLARS_PER_MILLION {
        place.problem(ProblemCode::TooBig, format!("Too big: expected number to be <={MAX_DOLLARS_PER_MILLION}"));
        return None;
    }
    Some((dollars_per_million * 1e6).round() as i64)
}
