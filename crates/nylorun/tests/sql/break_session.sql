UPDATE sessions SET segment = -1 WHERE id = 's'
