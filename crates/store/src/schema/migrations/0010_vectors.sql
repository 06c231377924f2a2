-- The vectors of entries, made by the embedding model. A vector of another model than the
-- configured one is ignored and overwritten.
CREATE TABLE cf_agents_entry_vectors (
  number INTEGER PRIMARY KEY NOT NULL,  -- the entry's
  model  TEXT NOT NULL,
  vector TEXT NOT NULL                  -- a printable character a number
);

-- The vectors of events, for an agent that switched them on. Searches write them, appends
-- never do.
CREATE TABLE cf_agents_event_vectors (
  place  INTEGER PRIMARY KEY NOT NULL,  -- as in the index of words: session's number, then seq
  model  TEXT NOT NULL,
  vector TEXT NOT NULL
);
