//! The tables whose rows contain user text, as typed deletions name them.

use base::database::TableName;

pub const BLOCKS: TableName = TableName::named("cf_agents_blocks");
pub const BLOCK_VERSIONS: TableName = TableName::named("cf_agents_block_versions");
pub const CALLBACKS: TableName = TableName::named("cf_agents_callbacks");
pub const COMPACTIONS: TableName = TableName::named("cf_agents_compactions");
pub const EARLY_ANSWERS: TableName = TableName::named("cf_agents_early_answers");
pub const ENTRIES: TableName = TableName::named("cf_agents_entries");
/// The full-text index of the entries.
pub const ENTRIES_SEARCH: TableName = TableName::named("cf_agents_entries_search");
pub const ENTRY_VECTORS: TableName = TableName::named("cf_agents_entry_vectors");
pub const EVENTS: TableName = TableName::named("cf_agents_events");
pub const EVENT_VECTORS: TableName = TableName::named("cf_agents_event_vectors");
pub const ITEM_VERSIONS: TableName = TableName::named("cf_agents_item_versions");
pub const LAST_TURNS: TableName = TableName::named("cf_agents_last_turns");
pub const LOADED_SKILLS: TableName = TableName::named("cf_agents_loaded_skills");
pub const MEDIA: TableName = TableName::named("cf_agents_media");
pub const PROMPTS: TableName = TableName::named("cf_agents_prompts");
pub const PROPOSALS: TableName = TableName::named("cf_agents_proposals");
/// The full-text index of the events.
pub const EVENTS_SEARCH: TableName = TableName::named("cf_agents_search");
pub const SESSIONS: TableName = TableName::named("cf_agents_sessions");
pub const SKILLS: TableName = TableName::named("cf_agents_skills");
pub const SKILL_LISTINGS: TableName = TableName::named("cf_agents_skill_listings");
pub const SLICES: TableName = TableName::named("cf_agents_slices");
pub const WAITING: TableName = TableName::named("cf_agents_waiting");
