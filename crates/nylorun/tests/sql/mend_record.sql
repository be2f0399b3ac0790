UPDATE events SET body = substr(body, 1, length(body) - 1) WHERE session_id = 's' AND body LIKE '%x'
