-- The words of every event, once an agent has searched: until then nothing is
-- put in. Words are cut and stemmed by us, so the tokenizer only splits at
-- spaces. A row is found by its session's number and its seq, 32 bits each.
CREATE VIRTUAL TABLE cf_agents_search USING fts5 (
  stems,                     -- the text, words reduced to their stems
  words,                     -- the text, words as they are written
  about,                     -- who spoke, in which session, and when
  content = '',
  contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 0'
);

-- In how many events a word stands, for the ranking.
CREATE VIRTUAL TABLE cf_agents_search_words USING fts5vocab (cf_agents_search, row);

-- A text too long for one row of the index has more, whose numbers lead here.
CREATE TABLE cf_agents_search_parts (
  rowid_    INTEGER PRIMARY KEY NOT NULL,  -- of cf_agents_search, from 2^52
  number    INTEGER NOT NULL,              -- the session's
  seq       INTEGER NOT NULL
);

-- Finds an event's parts when it goes; only long texts pay for it.
CREATE INDEX cf_agents_search_parts_by_event
  ON cf_agents_search_parts (number, seq);
