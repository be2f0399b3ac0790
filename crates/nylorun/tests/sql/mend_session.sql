UPDATE sessions SET segment = 0 WHERE id = 's'
