-- How many messages wait, and how many of them are for the running turn to read.
ALTER TABLE sessions ADD COLUMN queued BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN steers BIGINT NOT NULL DEFAULT 0;

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
