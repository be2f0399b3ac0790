-- The order in which the ledger is exported. On PostgreSQL the place is the number of the transaction that wrote the row,
-- on SQLite it is counted. Rows that were there before share the first place. Rows at the last place are never deleted:
-- SQLite would count on from an earlier one.
ALTER TABLE model_usage ADD COLUMN place BIGINT NOT NULL DEFAULT 0;
CREATE INDEX model_usage_place ON model_usage (place, id);
CREATE INDEX model_usage_turn ON model_usage (turn_id, created_at, id);
CREATE INDEX model_usage_agent ON model_usage (agent_id, created_at);

-- How much may be spent. `scope_id` is the agent's id, and empty for the tenant and for turns.
CREATE TABLE model_budgets (
  scope TEXT COLLATE "C" NOT NULL,
  scope_id TEXT COLLATE "C" NOT NULL,
  period TEXT,
  limit_nano_usd BIGINT,
  limit_tokens BIGINT,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (scope, scope_id)
);
