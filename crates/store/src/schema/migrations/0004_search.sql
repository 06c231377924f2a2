-- The words of every event. The table is empty until the agent's first search. Rust cuts
-- and stems the words, so the tokenizer only splits at spaces. A rowid is the session's
-- number and the event's seq, 32 bits each.
CREATE VIRTUAL TABLE cf_agents_search USING fts5 (
  stems,                     -- the text, words reduced to their stems
  words,                     -- the text, words as they are written
  about,                     -- who spoke, in which session, and when
  content = '',
  contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 0'
);

-- The number of events that a word occurs in, for the ranking.
CREATE VIRTUAL TABLE cf_agents_search_words USING fts5vocab (cf_agents_search, row);

-- A text too long for one row of the index has more rows. This table says whose they are.
CREATE TABLE cf_agents_search_parts (
  rowid_    INTEGER PRIMARY KEY NOT NULL,  -- of cf_agents_search, from 2^52
  number    INTEGER NOT NULL,              -- the session's
  seq       INTEGER NOT NULL
);

-- Finds an event's parts when the event is deleted. Only long texts pay for this index.
CREATE INDEX cf_agents_search_parts_by_event
  ON cf_agents_search_parts (number, seq);
