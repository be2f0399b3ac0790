-- Where in the record the newest edit stands that replaces the whole transcript.
ALTER TABLE sessions ADD COLUMN history_snapshot BIGINT;

-- From what the next segment of a turn begins; one row a session at most.
CREATE TABLE checkpoints (
  session_id TEXT NOT NULL PRIMARY KEY,
  turn_id TEXT NOT NULL,
  segment BIGINT NOT NULL,
  body TEXT NOT NULL
) WITHOUT ROWID;

-- What a transcript is folded from: a turn that was cancelled or failed is undone.
DROP INDEX events_transcript;
CREATE INDEX events_transcript ON events (session_id, seq)
  WHERE type IN ('transcript.updated', 'turn.cancelled', 'turn.failed');
