//! Where time and fresh ids enter: decisions get both as arguments.

use std::time::{SystemTime, UNIX_EPOCH};

use nylorun_domain::change::Stamp;
use nylorun_domain::time::Millis;

/// The time now.
pub fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// A random UUID, version 4.
pub fn uuid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = nylorun_domain::hash::to_hex(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A ULID in lower-case Crockford letters: 48 bits of time, 80 random bits (api 1.12).
pub fn ulid() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let time = u128::from(now().0.unsigned_abs()) & 0xffff_ffff_ffff;
    let random = random::<10>().iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    let bits = time << 80 | random;
    let letter = |at: u32| char::from(LETTERS[(bits >> (125 - 5 * at) & 0x1f) as usize]);
    (0..26).map(letter).collect()
}

/// A caller's key: 64 lower-case hexadecimal digits, 256 random bits (api 1.5).
pub fn fresh_key() -> String {
    nylorun_domain::hash::to_hex(&random::<32>())
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        // Without randomness every id would collide and every key be guessable: nothing may go on.
        std::process::abort();
    }
    bytes
}

/// The time and the ids of a decision that is made now.
pub fn stamp() -> Stamp<'static> {
    Stamp { now: now(), uuid: &uuid }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{ulid, uuid};

    #[test]
    fn ids_have_their_forms_and_do_not_repeat() {
        let uuids: HashSet<String> = (0..1000).map(|_| uuid()).collect();
        assert_eq!(uuids.len(), 1000);
        assert!(
            uuids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19]))
        );
        let ulids: HashSet<String> = (0..1000).map(|_| ulid()).collect();
        assert_eq!(ulids.len(), 1000);
        let is_crockford = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase() && !"ilou".contains(c);
        assert!(ulids.iter().all(|id| id.len() == 26 && id.chars().all(is_crockford) && id.starts_with("01")));
    }
}
