-- What an embedding model made of an entry's text: no row without such a model.
-- Of another model than the one that is configured it is no vector, and is
-- written over.
CREATE TABLE cf_agents_entry_vectors (
  number INTEGER PRIMARY KEY NOT NULL,  -- the entry's
  model  TEXT NOT NULL,
  vector TEXT NOT NULL                  -- a printable character a number
);

-- The same of what was said, for an agent that switched it on: written by its
-- searches, never by an append.
CREATE TABLE cf_agents_event_vectors (
  place  INTEGER PRIMARY KEY NOT NULL,  -- as in the index of words: session's number, then seq
  model  TEXT NOT NULL,
  vector TEXT NOT NULL
);
