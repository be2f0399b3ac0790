//! What tokens cost.

use nylorun_domain::model::Usage;
use serde::{Deserialize, Deserializer};

/// Prices of a model. A file gives US dollars per million tokens; they are kept as trillionths of a dollar per token,
/// whole numbers, so that sums are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    #[serde(deserialize_with = "pico_per_token")]
    input: i64,
    #[serde(deserialize_with = "pico_per_token")]
    output: i64,
    /// Input read from the cache; like input when the file says nothing.
    #[serde(default, deserialize_with = "maybe_pico_per_token")]
    cache_read: Option<i64>,
    /// Input written to the cache; like input when the file says nothing.
    #[serde(default, deserialize_with = "maybe_pico_per_token")]
    cache_write: Option<i64>,
}

/// No model costs more than this a token; what is larger is a slip of the pen, and would overflow sums.
const MAX_PICO_PER_TOKEN: i64 = 1_000_000_000_000;

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

    pub(super) fn is_in_range(self) -> bool {
        let prices = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        prices.into_iter().flatten().all(|price| (0..=MAX_PICO_PER_TOKEN).contains(&price))
    }
}

fn pico_per_token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let dollars_per_million = f64::deserialize(deserializer)?;
    // The cast saturates, and what is out of range is refused afterwards.
    Ok((dollars_per_million * 1e6).round() as i64)
}

fn maybe_pico_per_token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    pico_per_token(deserializer).map(Some)
}
