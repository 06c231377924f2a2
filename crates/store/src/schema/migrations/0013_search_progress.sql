-- Sessions that are behind the building of the whole index, because they were written to,
-- forked or searched by themselves meanwhile. The configuration's `search` says how far
-- the building is; `true`: all is in the index.
CREATE TABLE cf_agents_search_progress (
  number       INTEGER PRIMARY KEY NOT NULL,  -- the session's
  indexed_from INTEGER NOT NULL               -- its events from this seq on are in; 0: all are
);
