-- The session whose workspace a session shares, and how many share a session's own.
ALTER TABLE sessions ADD COLUMN sandbox_owner_id TEXT;
ALTER TABLE sessions ADD COLUMN sharers BIGINT NOT NULL DEFAULT 0;
-- Only sessions that share stand here.
CREATE INDEX sessions_sharers ON sessions (sandbox_owner_id, id) WHERE sandbox_owner_id IS NOT NULL;
