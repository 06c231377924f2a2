-- What an agent may use of a server of tools in a person's name: its client at the authorization
-- server, the person's tokens, and an authorization that is under way. Encrypted with
-- TOOL_TOKEN_KEY.
CREATE TABLE cf_agents_tool_authorizations (
  server     TEXT PRIMARY KEY NOT NULL,
  sealed     TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);
