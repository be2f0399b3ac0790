//! Lists of sessions (api 1.10, 2.2): newest first, in pages. A page reads a bounded number of rows along one index,
//! however many sessions there are.

use nylorun_domain::id::{AgentId, SessionId, TurnId, UserId};
use nylorun_domain::session::Status;
use nylorun_domain::time::Millis;

use crate::db::{DbError, Row, Val};
use crate::session::unknown_word;
use crate::{Store, StoreError, params};

/// Rows that are read at once where the index does not know the whole filter.
const STEP: usize = 250;
/// Most rows that a page looks at, so that it takes some milliseconds at most. A page that came so far is short.
const EXAMINED: usize = 1_000;

macro_rules! list {
    ($where:literal) => {
        concat!(
            "SELECT id, agent_id, owner_user_id, status, active_turn_id, last_turn_id, created_at, last_event_at \
             FROM sessions WHERE (created_at, id) < ($1, $2) ",
            $where,
            " DESC, id DESC LIMIT $3"
        )
    };
}
const ALL: &str = list!("ORDER BY created_at");
const OF_AGENT: &str = list!("AND agent_id = $4 ORDER BY created_at");
const OF_USER: &str = list!("AND owner_user_id = $4 ORDER BY created_at");
// The lists of the conditions are those of the partial indexes, word for word: by them both databases see that the
// index serves.
const STOPPED: &str = list!(
    "AND status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled') AND status = $4 ORDER BY created_at"
);
const STOPPED_OF_AGENT: &str = list!(
    "AND status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled') AND status = $4 AND agent_id = $5 \
     ORDER BY created_at"
);
const STOPPED_OF_USER: &str = list!(
    "AND status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled') AND status = $4 \
     AND owner_user_id = $5 ORDER BY created_at"
);
// Few sessions are live at a time: they are sorted. The sum, and the empty text, keep both databases from walking all
// sessions, or all of the agent's, instead.
const LIVE: &str = list!("AND status IN ('runnable', 'running') AND status = $4 ORDER BY created_at + 0");
const LIVE_OF_AGENT: &str =
    list!("AND status IN ('runnable', 'running') AND status = $4 AND agent_id || '' = $5 ORDER BY created_at + 0");
// Few sessions have such effects at a time, whatever the number of all: the index of uncertain effects names them, and
// they are sorted.
const UNCERTAIN: &str =
    list!("AND id IN (SELECT session_id FROM effects WHERE status = 'uncertain') ORDER BY created_at + 0");

/// Every statement of this file, for the test that prepares them.
pub(crate) const SQL: &[&str] =
    &[ALL, OF_AGENT, OF_USER, STOPPED, STOPPED_OF_AGENT, STOPPED_OF_USER, LIVE, LIVE_OF_AGENT, UNCERTAIN];

/// Which sessions a list shows; each part narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those of this person.
    pub owner: Option<UserId>,
    /// Only those in this status.
    pub status: Option<Status>,
    /// Only those that have such effects.
    pub effects: Effects,
}

/// Which effects a listed session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effects {
    /// Any, or none.
    #[default]
    Any,
    /// One at least of which nobody knows whether it happened, of whatever turn.
    Uncertain,
}

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Its id.
    pub id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Whose it is.
    pub owner_user_id: UserId,
    /// Where it stands.
    pub status: Status,
    /// The turn that has not ended.
    pub active_turn_id: Option<TurnId>,
    /// The turn that ended last.
    pub last_turn_id: Option<TurnId>,
    /// When it was opened.
    pub created_at: Millis,
    /// When its last event was written.
    pub last_event_at: Option<Millis>,
}

/// A place in a list: by time of opening and, among those of one millisecond, by id, both falling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPlace {
    /// When the session was opened.
    pub created_at: Millis,
    /// Its id.
    pub id: SessionId,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPage {
    /// Newest first; perhaps fewer than were asked for, also where more follow.
    pub sessions: Vec<ListedSession>,
    /// Where the list goes on, or `None` at its end.
    pub next: Option<SessionPlace>,
}

impl Store {
    /// All sessions that the filter leaves, newest first.
    pub async fn session_list(&self, filter: &SessionFilter) -> Result<Vec<ListedSession>, StoreError> {
        let way = Way::of(filter);
        let rows = self.db.query(way.sql, way.params(None, i64::MAX)).await?;
        let sessions = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(sessions.into_iter().filter(|session| filter.leaves(session)).collect())
    }

    /// At most `limit` (at least 1) sessions that the filter leaves, newest first, from after `place` on.
    pub async fn session_page(
        &self,
        filter: &SessionFilter,
        place: Option<&SessionPlace>,
        limit: usize,
    ) -> Result<SessionPage, StoreError> {
        let way = Way::of(filter);
        let step = if way.is_exact { limit + 1 } else { STEP };
        let mut page = SessionPage { sessions: Vec::new(), next: None };
        let mut place = place.cloned();
        let mut examined = 0;
        while examined < EXAMINED {
            let wanted = i64::try_from(step).unwrap_or(i64::MAX);
            let rows = self.db.query(way.sql, way.params(place.as_ref(), wanted)).await?;
            for row in &rows {
                let session = read(row)?;
                place = Some(session.place());
                if !filter.leaves(&session) {
                    continue;
                }
                // One more than was asked for says that the list goes on.
                if page.sessions.len() == limit {
                    page.next = page.sessions.last().map(ListedSession::place);
                    return Ok(page);
                }
                page.sessions.push(session);
            }
            if rows.len() < step {
                return Ok(page);
            }
            examined += rows.len();
        }
        page.next = place;
        Ok(page)
    }
}

impl SessionFilter {
    /// Whether the filter leaves a session that has such effects: its row does not tell them, so the statement chooses.
    fn leaves(&self, session: &ListedSession) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == session.agent_id)
            && self.owner.as_ref().is_none_or(|owner| *owner == session.owner_user_id)
            && self.status.is_none_or(|status| status == session.status)
    }
}

impl ListedSession {
    fn place(&self) -> SessionPlace {
        SessionPlace { created_at: self.created_at, id: self.id.clone() }
    }
}

/// The statement that walks the list along the index which knows most of a filter.
struct Way<'a> {
    sql: &'static str,
    /// What the index is asked for.
    fixed: Vec<&'a str>,
    /// Whether the statement gives only what the filter leaves.
    is_exact: bool,
}

impl<'a> Way<'a> {
    fn of(filter: &'a SessionFilter) -> Self {
        match filter.effects {
            Effects::Any => Self::along_sessions(filter),
            Effects::Uncertain => {
                let SessionFilter { agent, owner, status, effects: _ } = filter;
                let is_exact = agent.is_none() && owner.is_none() && status.is_none();
                Self { sql: UNCERTAIN, fixed: Vec::new(), is_exact }
            }
        }
    }

    fn along_sessions(filter: &'a SessionFilter) -> Self {
        let (agent, owner) = (filter.agent.as_ref().map(AgentId::as_str), filter.owner.as_ref().map(UserId::as_str));
        let kind = filter.status.map(|status| (StatusKind::of(status), status.as_str()));
        let (sql, fixed, is_exact) = match (kind, owner, agent) {
            (Some((StatusKind::Stopped, status)), Some(owner), _) => {
                (STOPPED_OF_USER, vec![status, owner], agent.is_none())
            }
            (Some((StatusKind::Stopped, status)), None, Some(agent)) => (STOPPED_OF_AGENT, vec![status, agent], true),
            (Some((StatusKind::Stopped, status)), None, None) => (STOPPED, vec![status], true),
            (Some((StatusKind::Live, status)), None, Some(agent)) => (LIVE_OF_AGENT, vec![status, agent], true),
            (Some((StatusKind::Live, status)), None, None) => (LIVE, vec![status], true),
            (Some((StatusKind::Live | StatusKind::Common, _)) | None, Some(owner), _) => {
                (OF_USER, vec![owner], kind.is_none() && agent.is_none())
            }
            (Some((StatusKind::Common, _)) | None, None, Some(agent)) => (OF_AGENT, vec![agent], kind.is_none()),
            (Some((StatusKind::Common, _)) | None, None, None) => (ALL, vec![], kind.is_none()),
        };
        Self { sql, fixed, is_exact }
    }

    fn params(&self, place: Option<&SessionPlace>, limit: i64) -> Vec<Val> {
        let (created_at, id) = place.map_or((i64::MAX, ""), |place| (place.created_at.0, place.id.as_str()));
        let mut params = params![created_at, id, limit];
        params.extend(self.fixed.iter().map(|text| Val::from(*text)));
        params
    }
}

/// How a status is found.
#[derive(Clone, Copy)]
enum StatusKind {
    /// By an index: sessions stand in it for long, and somebody looks for them.
    Stopped,
    /// By the index of what is to be advanced, which is small.
    Live,
    /// By looking at sessions one by one: most are in one of these, and an index of them would be written in each turn.
    Common,
}

impl StatusKind {
    fn of(status: Status) -> Self {
        match status {
            Status::Waiting | Status::Paused | Status::Uncertain | Status::Failed | Status::Cancelled => Self::Stopped,
            Status::Runnable | Status::Running => Self::Live,
            Status::Idle | Status::Completed => Self::Common,
        }
    }
}

fn read(row: &Row) -> Result<ListedSession, DbError> {
    Ok(ListedSession {
        id: SessionId::from_trusted(row.text_arc(0)?),
        agent_id: AgentId::from_trusted(row.text_arc(1)?),
        owner_user_id: UserId::from_trusted(row.text_arc(2)?),
        status: Status::from_wire(row.text(3)?).ok_or_else(|| unknown_word("status"))?,
        active_turn_id: row.opt_text_arc(4)?.map(TurnId::from_trusted),
        last_turn_id: row.opt_text_arc(5)?.map(TurnId::from_trusted),
        created_at: Millis(row.int(6)?),
        last_event_at: row.opt_int(7)?.map(Millis),
    })
}
