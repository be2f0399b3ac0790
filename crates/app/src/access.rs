//! Who calls: a key is looked up by its hash at every request, so that a rotated or deleted one stops at once (trust
//! 3).

use nylorun_domain::caller::{Principal, Role, is_key};
use nylorun_domain::hash::sha256_hex;

use crate::{App, Error};

impl App {
    /// The principal of a bearer key, or `None` for one that nobody has.
    ///
    /// The store is asked for the hash of what was sent: a comparison's time can tell nothing of a stored key.
    pub async fn principal(&self, bearer: &str) -> Result<Option<Principal>, Error> {
        if !is_key(bearer) {
            return Ok(None);
        }
        let row = self.store().principal_find(&sha256_hex(bearer.as_bytes())).await?;
        Ok(row.and_then(|row| Some(Principal { role: Role::from_wire(&row.role)?, key_id: row.id })))
    }
}
