-- What the tenant's operator set, one value a name.
CREATE TABLE settings (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
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
  error TEXT
);
CREATE INDEX sessions_created ON sessions (created_at, id);
CREATE INDEX sessions_agent ON sessions (agent_id, created_at, id);
CREATE INDEX sessions_user ON sessions (owner_user_id, created_at, id);
-- Only sessions that are to be advanced stand here: start-up does not depend on how much is stored.
CREATE INDEX sessions_live ON sessions (status, id) WHERE status IN ('runnable', 'running');

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
  PRIMARY KEY (session_id, id)
);
CREATE INDEX effects_uncertain ON effects (session_id, id) WHERE status = 'uncertain';

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
-- What a transcript is folded from.
CREATE INDEX events_transcript ON events (session_id, seq) WHERE type = 'transcript.updated';

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
  created_at BIGINT NOT NULL
);
CREATE INDEX model_usage_session ON model_usage (session_id, created_at, id);
CREATE INDEX model_usage_created ON model_usage (created_at, id);

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
