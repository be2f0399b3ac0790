UPDATE effects SET kind = 'telepathy' WHERE session_id = 's'
