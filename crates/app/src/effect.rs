//! Settling uncertain effects (decisions, Settling).

use nylorun_domain::caller::Caller;
use nylorun_domain::id::{EffectId, SessionId};
use nylorun_domain::session::Session;
use nylorun_domain::turn::{CommandHead, Refusal, SettleEffect, settle_effect};
use nylorun_turns::{CommitError, stamp};
use nylorun_wire::command::Accepted;
use nylorun_wire::effect::Settle;

use crate::command::{accepted, repeated};
use crate::{App, Error};

impl App {
    /// Says what became of an uncertain effect; the turn goes on when none is left.
    pub async fn effect_settle(
        &self,
        caller: &Caller,
        id: &SessionId,
        effect: &EffectId,
        settle: Settle,
    ) -> Result<Accepted, Error> {
        self.resets().refuse_work()?;
        loop {
            let session = self.session(caller, id).await?;
            if let Some(record) = self.store().command_get(id, &settle.idempotency_key).await? {
                return repeated(id, &record, &settle.body_hash);
            }
            let row = self.store().effect_get(id, effect).await?;
            let Some(row) = row else { return Err(self.missing_effect(&session, effect).await?.into()) };
            let uncertain = self.store().effect_uncertain(id).await?;
            let others = uncertain.iter().filter(|other| other.turn_id == row.turn_id && other.id != row.id).count();
            let head = CommandHead {
                request_id: settle.request_id.clone(),
                idempotency_key: settle.idempotency_key.clone(),
                body_hash: settle.body_hash.clone(),
            };
            let request = SettleEffect { head, outcome: settle.outcome.clone() };
            let change = settle_effect(&session, &row, others, request, &stamp())?;
            match self.committer().commit(&change).await {
                Ok(()) => {
                    self.parts().scheduler.wake(id);
                    return accepted(id, change.command.as_ref());
                }
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }

    /// Why an effect has no row: one that is to run again is forgotten until its turn asks for it anew.
    async fn missing_effect(&self, session: &Session, effect: &EffectId) -> Result<Refusal, Error> {
        let begun = session.active_turn_id.as_ref().and(session.input_seq);
        let settled = match begun {
            Some(begun) => self.store().event_settled(&session.id, begun).await?,
            None => Vec::new(),
        };
        let id = effect.clone();
        Ok(if settled.contains(effect) { Refusal::Retried(id) } else { Refusal::UnknownEffect(id) })
    }
}
