-- Lists of sessions by status. Only statuses in which a session stands still and somebody looks for it stand in these
-- indexes: a turn that ends well passes through none of them, so its commits write no more than before.
CREATE INDEX sessions_stopped ON sessions (status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
CREATE INDEX sessions_agent_stopped ON sessions (agent_id, status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
CREATE INDEX sessions_user_stopped ON sessions (owner_user_id, status, created_at, id)
  WHERE status IN ('waiting', 'paused', 'uncertain', 'failed', 'cancelled');
