//! Commands to a session (api 2.4, 1.9).

use nylorun_domain::caller::Caller;
use nylorun_domain::change::{CommandRecord, SessionChange};
use nylorun_domain::checkpoint::Said;
use nylorun_domain::id::{InteractionId, SessionId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::variant_of;
use nylorun_domain::session::Session;
use nylorun_domain::turn::{Cancel, CommandHead, GiveAnswer, Message, cancel, drop_queue, give_answer, message};
use nylorun_turns::{CommitError, stamp};
use nylorun_wire::command::{Accepted, Command, CommandKind};
use nylorun_wire::cursor;

use crate::session::pin_manifest;
use crate::{App, Error};

impl App {
    /// Carries out a command. A repetition under the same key gets the first answer, whatever the session does now.
    pub async fn command(&self, caller: &Caller, id: &SessionId, command: Command) -> Result<Accepted, Error> {
        match &command.kind {
            CommandKind::Message { .. } | CommandKind::Approve { .. } | CommandKind::Respond { .. } => {
                self.resets().refuse_work()?;
            }
            CommandKind::Cancel { .. } => {}
        }
        refuse_variant(caller, &command.kind)?;
        loop {
            let session = self.session(caller, id).await?;
            // After the row: where that shows a copy of this command at work, its answer is found.
            if let Some(record) = self.store().command_get(id, &command.idempotency_key).await? {
                return repeated(id, &record, &command.body_hash);
            }
            let change = self.decide(caller, &session, &command).await?;
            match self.committer().commit(&change).await {
                Ok(()) => {
                    self.after_commit(&change, &command.kind);
                    return accepted(id, change.command.as_ref());
                }
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }

    async fn decide(&self, caller: &Caller, session: &Session, command: &Command) -> Result<SessionChange, Error> {
        let head = CommandHead {
            request_id: command.request_id.clone(),
            idempotency_key: command.idempotency_key.clone(),
            body_hash: command.body_hash.clone(),
        };
        match &command.kind {
            CommandKind::Message { input, manifest, when_busy } => {
                let variant = match manifest {
                    Some(manifest) => Some(self.variant(session, manifest).await?),
                    None => None,
                };
                let said = Message { head, input: input.clone(), variant, when_busy: *when_busy };
                match message(session, said, self.workspace_holder(session).await?, &stamp()) {
                    Ok(change) => Ok(change),
                    Err(refusal) => Err(self.told(caller, refusal).await),
                }
            }
            CommandKind::Cancel { reason } => {
                self.decide_cancel(session, Cancel { head, reason: reason.clone() }).await
            }
            CommandKind::Approve { interaction_id, approved } => {
                let said = if *approved { Said::Approved } else { Said::Denied };
                self.answer(session, head, interaction_id, said).await
            }
            CommandKind::Respond { interaction_id, value } => {
                self.answer(session, head, interaction_id, Said::Value(value.clone())).await
            }
        }
    }

    /// Ends the session's turn, and drops what waits for it to end.
    pub(crate) async fn decide_cancel(&self, session: &Session, said: Cancel) -> Result<SessionChange, Error> {
        // Read after the row: a step that is committed in between changes the row, and this is decided again.
        let effects = match &session.active_turn_id {
            Some(turn) => self.store().effect_list(&session.id, turn).await?,
            None => Vec::new(),
        };
        let queued = self.queued(session).await?;
        let mut change = cancel(session, &effects, said, &stamp());
        drop_queue(&mut change, &queued, &stamp());
        Ok(change)
    }

    async fn answer(
        &self,
        session: &Session,
        head: CommandHead,
        interaction_id: &str,
        said: Said,
    ) -> Result<SessionChange, Error> {
        let checkpoint = self.store().checkpoint_get(&session.id).await?;
        let give = GiveAnswer { head, interaction_id: InteractionId::from_trusted(interaction_id), said };
        Ok(give_answer(session, checkpoint.as_ref(), give, &stamp())?)
    }

    /// The turn's own manifest: it may only narrow the definition; what the runtime adds to a session is added after.
    async fn variant(&self, session: &Session, manifest: &Json) -> Result<(Json, String), Error> {
        let saved = self.definition(session).await?;
        let variant = variant_of(&saved, manifest).map_err(Error::Invalid)?;
        let pinned = pin_manifest(variant, &saved, session.workspace.as_ref())?;
        self.store().manifest_put(&pinned.hash, &pinned.document).await?;
        Ok((manifest.clone(), pinned.hash))
    }

    /// What follows the commit: it is derived from it, and the sweep repeats it if this process dies here.
    fn after_commit(&self, change: &SessionChange, kind: &CommandKind) {
        match kind {
            CommandKind::Message { .. } => self.parts().scheduler.wake_after(change),
            CommandKind::Cancel { .. } => self.parts().scheduler.cancel(&change.session.id),
            CommandKind::Approve { .. } | CommandKind::Respond { .. } => {
                self.parts().scheduler.wake(&change.session.id);
            }
        }
    }
}

/// What an agent may do is not for whoever talks to it to say.
fn refuse_variant(caller: &Caller, kind: &CommandKind) -> Result<(), Error> {
    match kind {
        CommandKind::Message { manifest: Some(_), .. } if caller.person().is_some() => {
            Err(Error::scope_required("manifest"))
        }
        CommandKind::Message { .. }
        | CommandKind::Approve { .. }
        | CommandKind::Respond { .. }
        | CommandKind::Cancel { .. } => Ok(()),
    }
}

/// The stored answer of a command that came before under the same key. Only accepted ones are stored.
pub(crate) fn repeated(session: &SessionId, record: &CommandRecord, hash: &str) -> Result<Accepted, Error> {
    if record.body_hash != hash {
        return Err(Error::conflict(format!(
            "Idempotency key {:?} was used for another request; use a new key for a new request",
            record.idempotency_key
        )));
    }
    accepted(session, Some(record))
}

/// The answer of a command that was accepted.
pub(crate) fn accepted(session: &SessionId, record: Option<&CommandRecord>) -> Result<Accepted, Error> {
    let record = record.ok_or_else(|| Error::Internal { message: "a command left no record".to_owned() })?;
    Ok(Accepted {
        turn_id: record.turn_id.clone(),
        cursor: Some(cursor::event(session, record.seq)),
        request_id: record.request_id.clone(),
    })
}
