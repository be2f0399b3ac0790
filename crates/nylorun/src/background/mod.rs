//! A server in the background, on the machine that holds its home directory: `nylorun start`, `stop` and `logs`.

mod logs;
mod start;
mod stop;

pub(crate) use logs::run as logs;
pub(crate) use start::run as start;
pub(crate) use stop::run as stop;
