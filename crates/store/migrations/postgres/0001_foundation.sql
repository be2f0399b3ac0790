-- What the tenant's operator set, one value a name.
CREATE TABLE settings (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

-- Writes of the tenant's settings that were accepted, by the caller's key: a repetition gets the answer again.
CREATE TABLE tenant_writes (
  operation TEXT COLLATE "C" NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  body_hash TEXT NOT NULL,
  answer TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (operation, idempotency_key)
);

-- Callers' keys: only their hashes.
CREATE TABLE principals (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  token_hash TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX principals_token ON principals (token_hash);

-- Manifests, once by hash: definitions as saved, sessions' pinned copies, turns' variants.
CREATE TABLE manifests (
  hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  body TEXT NOT NULL
);

CREATE TABLE agents (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  manifest_hash TEXT NOT NULL,
  implementation_version TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- Sessions: small and hot. `rev` counts changes and refuses one that was decided on an older row.
CREATE TABLE sessions (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  agent_id TEXT COLLATE "C" NOT NULL,
  owner_user_id TEXT COLLATE "C" NOT NULL,
  definition_hash TEXT NOT NULL,
  manifest_hash TEXT NOT NULL,
  implementation_version TEXT NOT NULL,
  identity_hash TEXT NOT NULL,
  info TEXT,
  vault_ids TEXT NOT NULL,
  credential_selections TEXT NOT NULL,
  workspace TEXT,
  sandbox_source TEXT,
  created_at BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  active_turn_id TEXT,
  last_turn_id TEXT,
  segment BIGINT NOT NULL,
  input_seq BIGINT,
  turn_manifest_hash TEXT,
  history_from BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  owner TEXT,
  head BIGINT NOT NULL,
  rev BIGINT NOT NULL,
  last_event_at BIGINT,
  error TEXT,
  -- Where in the record the newest edit stands that replaces the whole transcript.
  history_snapshot BIGINT,
  -- How many messages wait, and how many of them are for the running turn to read.
  queued BIGINT NOT NULL DEFAULT 0,
  steers BIGINT NOT NULL DEFAULT 0,
  -- Events before this one are removed as far as they may be: the next look begins here.
  retained_from BIGINT NOT NULL DEFAULT 0,
  -- The session whose workspace a session shares, and how many share a session's own.
  sandbox_owner_id TEXT,
  sharers BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_created ON sessions (created_at, id);
CREATE INDEX sessions_agent ON sessions (agent_id, created_at, id);
CREATE INDEX sessions_user ON sessions (owner_user_id, created_at, id);
-- Only sessions that are to be advanced stand here: start-up does not depend on how much is stored.
CREATE INDEX sessions_live ON sessions (status, id) WHERE status IN ('runnable', 'running');
-- Lists of sessions by status. Only statuses in which a session stands still and somebody looks for it stand in these
-- indexes: a turn that ends well passes through none of them, so its commits write no more than before.
CREATE INDEX sessions_stopped ON sessions (status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
CREATE INDEX sessions_agent_stopped ON sessions (agent_id, status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
CREATE INDEX sessions_user_stopped ON sessions (owner_user_id, status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
-- Only sessions that share stand here.
CREATE INDEX sessions_sharers ON sessions (sandbox_owner_id, id) WHERE sandbox_owner_id IS NOT NULL;

-- Accepted commands, by the caller's key.
CREATE TABLE commands (
  session_id TEXT COLLATE "C" NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  body_hash TEXT NOT NULL,
  request_id TEXT NOT NULL,
  turn_id TEXT,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, idempotency_key)
);

-- Messages that wait, in the order of their events.
CREATE TABLE queued_messages (
  session_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  mode TEXT NOT NULL,
  request_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  input TEXT NOT NULL,
  manifest TEXT,
  manifest_hash TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, id)
);

-- The journal. A model's prompt never enters it: its hash alone binds it.
CREATE TABLE effects (
  session_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  segment BIGINT NOT NULL,
  kind TEXT NOT NULL,
  invocation_id TEXT NOT NULL,
  call_id TEXT,
  tool_name TEXT,
  capability_id TEXT,
  request_hash TEXT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  outcome TEXT,
  error TEXT,
  -- What a call is about, while it may become uncertain: the beginning of a command, or a path.
  subject TEXT,
  -- Where a tool call runs; none in rows of other kinds.
  runs_at TEXT,
  PRIMARY KEY (session_id, id)
);
CREATE INDEX effects_uncertain ON effects (session_id, id) WHERE status = 'uncertain';

-- From what the next segment of a turn begins; one row a session at most.
CREATE TABLE checkpoints (
  session_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  turn_id TEXT NOT NULL,
  segment BIGINT NOT NULL,
  body TEXT NOT NULL
);

-- Calls of workspace tools by the application itself that run, or ran when their process died.
CREATE TABLE direct_calls (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  tool TEXT NOT NULL,
  subject TEXT,
  worker TEXT NOT NULL,
  began_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, id)
);

-- Calls that a gate sends at most once, by the id of their effect. A row is there before its call is sent; `answer` is
-- the outcome, once it is known.
CREATE TABLE tool_crossings (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  session_id TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  request_hash TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  settled_at BIGINT,
  answer TEXT
);
CREATE INDEX tool_crossings_started ON tool_crossings (started_at);

-- The record: one ordered log a session.
CREATE TABLE events (
  session_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  type TEXT NOT NULL,
  visibility TEXT NOT NULL,
  body TEXT NOT NULL,
  committed_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, seq)
);
-- What a transcript is folded from: a turn that was cancelled or failed is undone.
CREATE INDEX events_transcript ON events (session_id, seq)
  WHERE type IN ('transcript.updated', 'turn.cancelled', 'turn.failed');

-- What a long history folds to, up to and with an event of the record: made from the record, and worth nothing but time.
CREATE TABLE transcript_snapshots (
  session_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  upto BIGINT NOT NULL,
  entries TEXT NOT NULL
);
-- It is read whole or not at all, and fast: nothing is compressed.
ALTER TABLE transcript_snapshots ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The outbox: sessions that are to be advanced.
CREATE TABLE wakes (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  session_id TEXT COLLATE "C" NOT NULL,
  reason TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX wakes_session ON wakes (session_id);
CREATE INDEX wakes_created ON wakes (created_at, id);

-- Processes that advance sessions: one heartbeat each.
CREATE TABLE workers (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  heartbeat_at BIGINT NOT NULL
);

CREATE TABLE workspaces (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  session_id TEXT COLLATE "C" NOT NULL,
  environment_id TEXT,
  backend TEXT NOT NULL,
  image TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX workspaces_session ON workspaces (session_id);

-- The ledger of model calls.
CREATE TABLE model_usage (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  effect_id TEXT NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  turn_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  provider TEXT,
  model TEXT,
  outcome TEXT NOT NULL,
  duplicate BIGINT NOT NULL,
  reported BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  total_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  cost_nano_usd BIGINT,
  created_at BIGINT NOT NULL,
  -- The order in which the ledger is exported. On PostgreSQL the place is the number of the transaction that wrote the
  -- row, on SQLite it is counted. Rows at the last place are never deleted: SQLite would count on from an earlier one.
  place BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX model_usage_session ON model_usage (session_id, created_at, id);
CREATE INDEX model_usage_created ON model_usage (created_at, id);
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

-- Providers' keys, sealed with the host's vault key; at most one row is active.
CREATE TABLE model_providers (
  provider TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  model TEXT NOT NULL,
  base_url TEXT,
  settings TEXT NOT NULL,
  auth_type TEXT NOT NULL,
  kek_id TEXT NOT NULL,
  nonce BYTEA NOT NULL,
  wrapped_dek BYTEA NOT NULL,
  ciphertext BYTEA NOT NULL,
  is_active BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
