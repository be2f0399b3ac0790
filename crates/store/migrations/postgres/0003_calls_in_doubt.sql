-- What a call is about, while it may become uncertain: the beginning of a command, or a path.
ALTER TABLE effects ADD COLUMN subject TEXT;

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
