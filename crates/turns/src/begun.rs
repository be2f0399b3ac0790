//! A turn as the commit that began it left it: what its take would otherwise read back.

use nylorun_domain::change::SessionChange;
use nylorun_domain::event::Payload;
use nylorun_domain::session::Session;
use nylorun_domain::transcript::Input;

/// The row and the input of a turn that has just begun. It has no journal yet. Should the row have changed since, the
/// take fails on its revision and reads.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) session: Session,
    pub(crate) input: Input,
}

impl Begun {
    /// What a committed change began, if it began a turn.
    pub(crate) fn by(change: &SessionChange) -> Option<Self> {
        let input = change.events.iter().find_map(|event| match &event.payload {
            Payload::CommandMessage { input, .. } => Some(input.clone()),
            _ => None,
        })?;
        Some(Self { session: change.session.clone(), input })
    }
}
