-- How many of the day's turns failed.
ALTER TABLE cf_agents_usage_days ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
