DELETE FROM events WHERE session_id = 's' AND type = 'transcript.updated'
    AND seq <= (SELECT upto FROM transcript_snapshots WHERE session_id = 's')
