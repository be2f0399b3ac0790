-- What a long history folds to, up to and with an event of the record: made from the record, and worth nothing but time.
CREATE TABLE transcript_snapshots (
  session_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  upto BIGINT NOT NULL,
  entries TEXT NOT NULL
);
-- It is read whole or not at all, and fast: nothing is compressed.
ALTER TABLE transcript_snapshots ALTER COLUMN entries SET STORAGE EXTERNAL;
