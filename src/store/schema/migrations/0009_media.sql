-- Where in this event's message inline media was cut out: a JSON array of
-- [byte offset, hash], by offset. Kept beside the text, so that nothing that a
-- message says can be taken for a reference. NULL for a message without.
ALTER TABLE cf_agents_events ADD COLUMN media TEXT;

-- Inline media, once by content in a session, in pieces that fit a row.
CREATE TABLE cf_agents_media (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,     -- SHA-256 of the whole, base64url
  part       INTEGER NOT NULL,  -- from 0
  text       TEXT NOT NULL,     -- as it stood in the message's JSON
  PRIMARY KEY (session_id, hash, part)
) WITHOUT ROWID;

-- Which events hold it: with the last of them it goes.
CREATE TABLE cf_agents_media_uses (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (session_id, hash, seq)
) WITHOUT ROWID;
