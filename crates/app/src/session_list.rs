//! Lists of sessions (api 1.10, 2.2).

use nylorun_domain::caller::Caller;
use nylorun_domain::id::{AgentId, UserId};
use nylorun_domain::session::Status;
use nylorun_store::{Effects, ListedSession, SessionFilter, SessionPlace};
use nylorun_wire::session::Summary;

use crate::{App, Error};

/// Which sessions a caller asks for; each part narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those in this status.
    pub status: Option<Status>,
    /// Only those in the environment of this id.
    pub environment: Option<String>,
    /// Only those of this person. For applications as themselves.
    pub owner: Option<UserId>,
    /// Only those that have such effects.
    pub effects: Effects,
}

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionsFound {
    /// Newest first; perhaps fewer than were asked for, also where more follow.
    pub sessions: Vec<Summary>,
    /// Where the list goes on, or `None` at its end.
    pub next: Option<SessionPlace>,
}

impl App {
    /// All sessions of an agent, or of all, with such effects, newest first; a subject sees its own.
    pub async fn session_list(
        &self,
        caller: &Caller,
        agent: Option<AgentId>,
        effects: Effects,
    ) -> Result<Vec<Summary>, Error> {
        let filter = SessionFilter { agent, owner: caller.only_owner().cloned(), status: None, effects };
        let sessions = self.store().session_list(&filter).await?;
        Ok(summaries(caller, sessions))
    }

    /// A page of sessions, newest first, from after `place` on; a subject sees its own.
    ///
    /// # Errors
    /// 403 when a subject asks for a person's sessions.
    pub async fn session_page(
        &self,
        caller: &Caller,
        query: SessionQuery,
        place: Option<&SessionPlace>,
        limit: usize,
    ) -> Result<SessionsFound, Error> {
        let owner = match (caller.only_owner(), query.owner) {
            (None, owner) => owner,
            (Some(own), None) => Some(own.clone()),
            (Some(_), Some(_)) => {
                let message =
                    "ownerUserId is for applications as themselves: leave it out to list the subject's sessions";
                return Err(Error::forbidden(message));
            }
        };
        // Environments with ids of their own are not built yet: no session is in one.
        if query.environment.is_some() {
            return Ok(SessionsFound { sessions: Vec::new(), next: None });
        }
        let filter = SessionFilter { agent: query.agent, owner, status: query.status, effects: query.effects };
        let page = self.store().session_page(&filter, place, limit).await?;
        Ok(SessionsFound { sessions: summaries(caller, page.sessions), next: page.next })
    }
}

/// Those of agents that are there for the caller.
fn summaries(caller: &Caller, sessions: Vec<ListedSession>) -> Vec<Summary> {
    sessions.into_iter().filter(|session| caller.sees_agent(&session.agent_id)).map(summary).collect()
}

fn summary(session: ListedSession) -> Summary {
    Summary {
        id: session.id,
        agent_id: session.agent_id,
        owner_user_id: session.owner_user_id,
        status: session.status.as_str().to_owned(),
        active_turn_id: session.active_turn_id,
        last_turn_id: session.last_turn_id,
        created_at: session.created_at,
        last_event_at: session.last_event_at,
    }
}
