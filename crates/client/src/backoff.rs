//! How long to wait before the next try (api 1.11).

use std::time::Duration;

/// Waits that double from the first to the longest.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The wait before the next try; the one after it is twice as long.
    pub(crate) fn advance(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.longest);
        wait
    }

    /// Something worked: the next wait is the first again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(30));
        let waits: Vec<u128> = (0..9).map(|_| backoff.advance().as_millis()).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        backoff.reset();
        assert_eq!(backoff.advance(), Duration::from_millis(250));
    }
}
