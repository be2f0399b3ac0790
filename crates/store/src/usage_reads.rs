//! Reading the ledger of model calls (api 1.10, 2.3, 3). What a read costs depends on the session, the turn, or the
//! agent and the time that it asks for, and on nothing else: each walks an index.

use nylorun_domain::budget::Spend;
use nylorun_domain::id::{AgentId, EffectId, SessionId, TurnId};
use nylorun_domain::model::{ModelRef, Usage};
use nylorun_domain::spending::{Tail, TailRow};
use nylorun_domain::time::Millis;
use nylorun_domain::usage::{Completed, Repetition, UsageRow, UsageTotals};

use crate::db::{DbError, Dialect, Row, Statement, Val};
use crate::session::unknown_word;
use crate::usage::{base, settled_below};
use crate::{Store, StoreError, WriteError, params};

macro_rules! sums {
    ($where:literal) => {
        concat!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(duplicate), 0) AS BIGINT), \
             CAST(COALESCE(SUM(1 - reported), 0) AS BIGINT), \
             CAST(COALESCE(SUM(CASE WHEN reported = 1 AND cost_nano_usd IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT), \
             CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT), \
             CAST(COALESCE(SUM(total_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT), \
             CAST(COALESCE(SUM(cache_write_tokens), 0) AS BIGINT), \
             CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT), \
             CAST(COALESCE(SUM(cost_nano_usd), 0) AS BIGINT) FROM model_usage WHERE ",
            $where
        )
    };
}
const SUMS_OF_SESSION: &str = sums!("session_id = $1 AND created_at >= $2");
// The empty text keeps both databases from walking the whole session instead of the turn.
const SUMS_OF_TURN: &str = sums!("session_id || '' = $1 AND turn_id = $2");

macro_rules! spend {
    ($where:literal) => {
        concat!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(reported), 0) AS BIGINT), COUNT(cost_nano_usd), \
             CAST(COALESCE(SUM(total_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(cost_nano_usd), 0) AS BIGINT) \
             FROM model_usage WHERE ",
            $where
        )
    };
}
// The sum keeps both databases from walking all that is settled instead of the period.
const SPEND: &str = spend!("created_at >= $1 AND place + 0 < $2");
const SPEND_OF_AGENT: &str = spend!("created_at >= $1 AND place + 0 < $2 AND agent_id = $3");
const SPEND_OF_TURN: &str = spend!("created_at >= $1 AND turn_id = $2");

macro_rules! calls {
    ($rest:expr) => {
        concat!(
            "SELECT id, effect_id, session_id, turn_id, agent_id, provider, model, outcome, duplicate, reported, \
             input_tokens, output_tokens, total_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, \
             cost_nano_usd, created_at, place FROM model_usage WHERE ",
            $rest
        )
    };
}
const OF_SESSION: &str = calls!("session_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4");
const OF_TURN: &str =
    calls!("session_id || '' = $1 AND turn_id = $5 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4");
const EXPORT_SQLITE: &str = calls!("(place, id) > ($1, $2) ORDER BY place, id LIMIT $3");
const EXPORT_POSTGRES: &str =
    calls!(concat!("(place, id) > ($1, $2) AND place < ", settled_below!(postgres), " ORDER BY place, id LIMIT $3"));

macro_rules! tail {
    ($settled_below:expr) => {
        concat!(
            "SELECT place, effect_id, turn_id, agent_id, created_at, reported, total_tokens, cost_nano_usd, ",
            $settled_below,
            " FROM model_usage WHERE place >= $1 ORDER BY place, id LIMIT $2"
        )
    };
}
const TAIL_SQLITE: &str = tail!(settled_below!(sqlite));
const TAIL_POSTGRES: &str = tail!(settled_below!(postgres));
const SETTLED_SQLITE: &str = concat!("SELECT ", settled_below!(sqlite));
const SETTLED_POSTGRES: &str = concat!("SELECT ", settled_below!(postgres));

/// At the start of a process: the base of places rises to the last one when transactions are counted from below it.
const RAISE_BASE_POSTGRES: &str = concat!(
    "INSERT INTO settings (key, value) SELECT 'usage.base', CAST(last AS TEXT) \
     FROM (SELECT COALESCE(MAX(place), 0) AS last FROM model_usage) AS ledger \
     WHERE last > CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + ",
    base!(),
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
);

/// Every statement of this file in this dialect, for the tests that prepare and explain them.
pub(crate) fn sql(dialect: Dialect) -> Vec<&'static str> {
    let mut all = vec![SUMS_OF_SESSION, SUMS_OF_TURN, SPEND, SPEND_OF_AGENT, SPEND_OF_TURN, OF_SESSION, OF_TURN];
    match dialect {
        Dialect::Sqlite => all.extend([EXPORT_SQLITE, TAIL_SQLITE, SETTLED_SQLITE]),
        Dialect::Postgres => {
            all.extend([EXPORT_POSTGRES, TAIL_POSTGRES, SETTLED_POSTGRES, RAISE_BASE_POSTGRES]);
        }
    }
    all
}

/// Whose calls are summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendOf {
    /// All.
    Tenant,
    /// Those of this agent's turns.
    Agent(AgentId),
    /// Those of this turn.
    Turn(TurnId),
}

/// A row of the export with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedCall {
    /// Its place.
    pub place: i64,
    /// The call.
    pub call: UsageRow,
}

impl Store {
    /// What a session's calls used together since this time, or those of one of its turns. A session of the same id may
    /// have been there before.
    pub async fn usage_totals(
        &self,
        session: &SessionId,
        since: Millis,
        turn: Option<&TurnId>,
    ) -> Result<UsageTotals, StoreError> {
        let rows = match turn {
            None => self.db.query(SUMS_OF_SESSION, params![session.as_str(), since.0]).await?,
            Some(turn) => self.db.query(SUMS_OF_TURN, params![session.as_str(), turn.as_str()]).await?,
        };
        Ok(rows.first().map_or(Ok(UsageTotals::default()), read_totals)?)
    }

    /// At most `limit` of a session's calls, or of one of its turns, the oldest first, from after this time and id on.
    pub async fn usage_of_session(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
        after: Option<(Millis, &str)>,
        limit: i64,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let (at, id) = after.map_or((i64::MIN, ""), |(at, id)| (at.0, id));
        let mut params = params![session.as_str(), at, id, limit];
        let sql = match turn {
            None => OF_SESSION,
            Some(turn) => {
                params.push(Val::from(turn.as_str()));
                OF_TURN
            }
        };
        let rows = self.db.query(sql, params).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// At most `limit` calls of the whole ledger in the order of their places, from after this place and id on. No row
    /// will appear before one that was given, whichever transactions are still open.
    pub async fn usage_export(&self, after: (i64, &str), limit: i64) -> Result<Vec<ExportedCall>, StoreError> {
        let sql = match self.db.dialect() {
            Dialect::Sqlite => EXPORT_SQLITE,
            Dialect::Postgres => EXPORT_POSTGRES,
        };
        let rows = self.db.query(sql, params![after.0, after.1, limit]).await?;
        let exported = |row: &Row| Ok(ExportedCall { place: row.int(18)?, call: read(row)? });
        Ok(rows.iter().map(exported).collect::<Result<_, DbError>>()?)
    }

    /// What was spent since `since` by rows below this place. A turn's rows count wherever they are.
    pub async fn usage_spend(&self, of: &SpendOf, since: Millis, below: i64) -> Result<Spend, StoreError> {
        let rows = match of {
            SpendOf::Tenant => self.db.query(SPEND, params![since.0, below]).await?,
            SpendOf::Agent(agent) => self.db.query(SPEND_OF_AGENT, params![since.0, below, agent.as_str()]).await?,
            SpendOf::Turn(turn) => self.db.query(SPEND_OF_TURN, params![since.0, turn.as_str()]).await?,
        };
        Ok(rows.first().map_or(Ok(Spend::default()), read_spend)?)
    }

    /// At most `limit` rows of the ledger's end, from this place on. When there are as many, the last place is left out
    /// of what is settled: its other rows may be missing.
    pub async fn usage_tail(&self, from: i64, limit: i64) -> Result<Tail, StoreError> {
        let sql = match self.db.dialect() {
            Dialect::Sqlite => TAIL_SQLITE,
            Dialect::Postgres => TAIL_POSTGRES,
        };
        let rows = self.db.query(sql, params![from, limit]).await?;
        let mut settled_below = rows.last().map_or(Ok(from), |row| row.int(8))?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= limit);
        let rows = rows.iter().map(read_tail).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = rows.last().filter(|_| is_full) {
            settled_below = settled_below.min(last.place);
        }
        Ok(Tail { rows, settled_below })
    }

    /// The place below which no row will appear any more.
    pub async fn usage_settled_below(&self) -> Result<i64, StoreError> {
        let sql = match self.db.dialect() {
            Dialect::Sqlite => SETTLED_SQLITE,
            Dialect::Postgres => SETTLED_POSTGRES,
        };
        let rows = self.db.query(sql, Vec::new()).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }

    /// Keeps places rising in a database that was restored into another server. Once at the start of a process, before
    /// it writes to the ledger.
    pub async fn usage_prepare(&self) -> Result<(), WriteError> {
        match self.db.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.db.write(vec![Statement::any(RAISE_BASE_POSTGRES, Vec::new())]).await,
        }
    }
}

fn read_totals(row: &Row) -> Result<UsageTotals, DbError> {
    Ok(UsageTotals {
        calls: row.int(0)?,
        duplicates: row.int(1)?,
        unreported: row.int(2)?,
        unpriced: row.int(3)?,
        used: Usage {
            input: row.int(4)?,
            output: row.int(5)?,
            total: row.int(6)?,
            cached: row.int(7)?,
            cache_write: row.int(8)?,
            reasoning: row.int(9)?,
            cost_nano_usd: Some(row.int(10)?),
        },
    })
}

fn read_spend(row: &Row) -> Result<Spend, DbError> {
    Ok(Spend {
        calls: row.int(0)?,
        reported: row.int(1)?,
        priced: row.int(2)?,
        tokens: row.int(3)?,
        cost_nano_usd: row.int(4)?,
    })
}

fn read_tail(row: &Row) -> Result<TailRow, DbError> {
    let cost = row.opt_int(7)?;
    Ok(TailRow {
        place: row.int(0)?,
        effect_id: EffectId::from_trusted(row.text_arc(1)?),
        turn_id: TurnId::from_trusted(row.text_arc(2)?),
        agent_id: AgentId::from_trusted(row.text_arc(3)?),
        at: Millis(row.int(4)?),
        spend: Spend {
            calls: 1,
            reported: row.int(5)?,
            priced: i64::from(cost.is_some()),
            tokens: row.int(6)?,
            cost_nano_usd: cost.unwrap_or(0),
        },
    })
}

fn read(row: &Row) -> Result<UsageRow, DbError> {
    let model = row.opt_text(5)?.zip(row.opt_text(6)?);
    let usage = Usage {
        input: row.int(10)?,
        output: row.int(11)?,
        total: row.int(12)?,
        cached: row.int(13)?,
        cache_write: row.int(14)?,
        reasoning: row.int(15)?,
        cost_nano_usd: row.opt_int(16)?,
    };
    Ok(UsageRow {
        id: row.text(0)?.to_owned(),
        effect_id: EffectId::from_trusted(row.text_arc(1)?),
        session_id: SessionId::from_trusted(row.text_arc(2)?),
        turn_id: TurnId::from_trusted(row.text_arc(3)?),
        agent_id: AgentId::from_trusted(row.text_arc(4)?),
        model: model.map(|(provider, model)| ModelRef { provider: provider.to_owned(), model: model.to_owned() }),
        completed: match row.text(7)? {
            "completed" => Completed::Completed,
            "failed" => Completed::Failed,
            _ => return Err(unknown_word("outcome")),
        },
        repetition: if row.int(8)? == 1 { Repetition::Duplicate } else { Repetition::First },
        usage: (row.int(9)? == 1).then_some(usage),
        at: Millis(row.int(17)?),
    })
}
