-- Where a tool call runs; none in rows of builds whose tools all ran in workspaces.
ALTER TABLE effects ADD COLUMN runs_at TEXT;

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
