-- Writes of the tenant's settings that were accepted, by the caller's key: a repetition gets the answer again.
CREATE TABLE tenant_writes (
  operation TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  answer TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (operation, idempotency_key)
) WITHOUT ROWID;
