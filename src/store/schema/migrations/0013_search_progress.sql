-- Sessions that are not as far in the index as the building of the whole has come:
-- one that was written to, forked, or searched by itself meanwhile. How far that has
-- come is in the configuration under `search`: `true` where all is in the index.
CREATE TABLE cf_agents_search_progress (
  number       INTEGER PRIMARY KEY NOT NULL,  -- the session's
  indexed_from INTEGER NOT NULL               -- its events from this seq on are in; 0: all are
);
