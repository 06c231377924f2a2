-- What a turn has told is told again from the turn itself.
DROP TABLE cf_agents_turn_chunks;
