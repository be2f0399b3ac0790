-- Writes of the tenant's settings that were accepted, by the caller's key: a repetition gets the answer again.
CREATE TABLE tenant_writes (
  operation TEXT COLLATE "C" NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  body_hash TEXT NOT NULL,
  answer TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (operation, idempotency_key)
);
