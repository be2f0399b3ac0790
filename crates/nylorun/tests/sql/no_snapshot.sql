DELETE FROM transcript_snapshots WHERE session_id = 's'
