//! How long to wait before another attempt.

use std::time::Duration;

use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::InvocationId;

use super::CallSettings;
use crate::failure::Fault;

/// The wait after this attempt: what the provider asked for, up to the settings' bound, else the base delay doubled
/// for each attempt made. Spread over 75 to 125 % by the call's id, so that calls that failed together do not come
/// back together.
pub(super) fn delay(settings: &CallSettings, fault: &Fault, attempt: u32, invocation: &InvocationId) -> Duration {
    if let Some(asked) = fault.retry_after {
        return asked.min(settings.max_retry_after);
    }
    let doubled = settings.base_delay.saturating_mul(1 << (attempt - 1).min(16));
    doubled.mul_f64(0.75 + 0.5 * spread(invocation, attempt))
}

/// A number from 0 to 1 that depends on the call and the attempt alone.
fn spread(invocation: &InvocationId, attempt: u32) -> f64 {
    let digest = sha256_hex(format!("{}:{attempt}", invocation.as_str()).as_bytes());
    u32::from_str_radix(&digest[..4], 16).map_or(0.5, |value| f64::from(value) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_spread() {
        let settings = CallSettings::default();
        let fault = Fault::transient("x");
        for at in 0..100 {
            let invocation = InvocationId::from_trusted(format!("i{at}"));
            for (attempt, base) in [(1, 2.0), (2, 4.0), (3, 8.0)] {
                let waited = delay(&settings, &fault, attempt, &invocation).as_secs_f64();
                assert!((base * 0.75..=base * 1.25).contains(&waited), "{attempt}: {waited}");
            }
        }
        let of = |id: &str| delay(&settings, &fault, 1, &InvocationId::from_trusted(id));
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
    }

    #[test]
    fn a_provider_may_ask_for_up_to_a_minute() {
        let settings = CallSettings::default();
        let invocation = InvocationId::from_trusted("i");
        let asked = |seconds| Fault { retry_after: Some(Duration::from_secs(seconds)), ..Fault::transient("x") };
        assert_eq!(delay(&settings, &asked(7), 1, &invocation), Duration::from_secs(7));
        assert_eq!(delay(&settings, &asked(3600), 1, &invocation), Duration::from_secs(60));
        assert_eq!(delay(&settings, &asked(0), 2, &invocation), Duration::ZERO);
    }
}
