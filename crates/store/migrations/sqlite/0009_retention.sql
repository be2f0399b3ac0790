-- Events before this one are removed as far as they may be: the next look begins here.
ALTER TABLE sessions ADD COLUMN retained_from BIGINT NOT NULL DEFAULT 0;
