//! How the last server that stopped by itself left its turns: for `nylorun stop`, which cannot ask one that is gone.

use serde::{Deserialize, Serialize};

use super::{Home, write_private};
use crate::cli::{Failure, KeptFile, read_file};

/// `logs/last-stop.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastStop {
    /// The process that stopped.
    pub(crate) pid: u32,
    /// Turns that ran when it was asked to stop.
    pub(crate) turns_running: u64,
    /// Turns of the database that have not ended and go on at the next start.
    pub(crate) turns_left: u64,
}

impl KeptFile for LastStop {
    const WHEN_DAMAGED: &'static str = "the next stop writes it anew";

    fn problem(&self) -> Option<&'static str> {
        None
    }
}

impl Home {
    /// What this process says as it stops.
    pub(crate) fn write_last_stop(&self, stop: &LastStop) -> Result<(), Failure> {
        write_private(&self.logs().join("last-stop.json"), stop)
    }

    /// How the process of this number stopped; `None` when it did not say.
    pub(crate) fn last_stop(&self, pid: u32) -> Result<Option<LastStop>, Failure> {
        let stop: Option<LastStop> = read_file(&self.logs().join("last-stop.json"))?;
        Ok(stop.filter(|stop| stop.pid == pid))
    }
}
