//! What trying again does not mend: the code and the sentences of a turn that fails of it, and when to look again where
//! not even that can be written.

use std::time::Duration;

use nylorun_store::StoreError;

/// The code of a turn that failed because of what the database refuses, or holds.
pub(crate) const CODE: &str = "internal";

/// What such a turn says when its record is refused.
pub(crate) fn not_recorded(error: &StoreError) -> String {
    said("the database refuses what this turn records, and would again", error)
}

/// What such a turn says when something that is stored for it cannot be read.
pub(crate) fn not_read(error: &StoreError) -> String {
    said("what is stored for this turn cannot be read, now or later", error)
}

fn said(what: &str, error: &StoreError) -> String {
    format!("{what}: {}. The server's log says more", error.reason())
}

/// How long to wait until a session is looked at again that only a new build or an operator can help, after `looks`
/// looks in vain: from a second to ten minutes.
pub(crate) fn pause_after(looks: u32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(10 * 60);
    let doubled = 2_u64.saturating_pow(looks.saturating_sub(1));
    Duration::from_secs(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::pause_after;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let pauses = [1, 2, 3, 9, 10, 11, 60, u32::MAX].map(|looks| pause_after(looks).as_secs());
        assert_eq!(pauses, [1, 2, 4, 256, 512, 600, 600, 600]);
    }
}
