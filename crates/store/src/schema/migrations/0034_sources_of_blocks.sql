-- Where a block's text comes from, and where its definition does: `user`, `agent`, `tool`, `import`.
-- NULL: as `written_by` says, and for a definition an operation or the deployment.
ALTER TABLE cf_agents_block_versions ADD COLUMN source TEXT;
ALTER TABLE cf_agents_blocks ADD COLUMN origin TEXT;
