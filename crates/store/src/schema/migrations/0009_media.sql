-- The places where inline media was cut out of this event's message: a JSON array of
-- [byte offset, hash], by offset. It is kept beside the text, so no text of a message can
-- be taken for a reference. NULL for a message without media.
ALTER TABLE cf_agents_events ADD COLUMN media TEXT;

-- Inline media: one copy per session, in parts that fit a row.
CREATE TABLE cf_agents_media (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,     -- SHA-256 of the whole, base64url
  part       INTEGER NOT NULL,  -- from 0
  text       TEXT NOT NULL,     -- as it stood in the message's JSON
  PRIMARY KEY (session_id, hash, part)
) WITHOUT ROWID;

-- The events that use the media. With the last use, the media is deleted.
CREATE TABLE cf_agents_media_uses (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (session_id, hash, seq)
) WITHOUT ROWID;
