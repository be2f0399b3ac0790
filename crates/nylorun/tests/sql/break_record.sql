UPDATE events SET body = body || 'x' WHERE session_id = 's' AND type = 'transcript.updated'
