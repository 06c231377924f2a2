//! The tables whose rows contain user text, as deletions name them.

use base::delete::Table;

pub const BLOCKS: Table = Table::named("cf_agents_blocks");
pub const BLOCK_VERSIONS: Table = Table::named("cf_agents_block_versions");
pub const CALLBACKS: Table = Table::named("cf_agents_callbacks");
pub const COMPACTIONS: Table = Table::named("cf_agents_compactions");
pub const EARLY_ANSWERS: Table = Table::named("cf_agents_early_answers");
pub const ENTRIES: Table = Table::named("cf_agents_entries");
/// The index of the entries' words.
pub const ENTRIES_SEARCH: Table = Table::named("cf_agents_entries_search");
pub const ENTRY_VECTORS: Table = Table::named("cf_agents_entry_vectors");
pub const EVENTS: Table = Table::named("cf_agents_events");
pub const EVENT_VECTORS: Table = Table::named("cf_agents_event_vectors");
pub const ITEM_VERSIONS: Table = Table::named("cf_agents_item_versions");
pub const LAST_TURNS: Table = Table::named("cf_agents_last_turns");
pub const LOADED_SKILLS: Table = Table::named("cf_agents_loaded_skills");
pub const MEDIA: Table = Table::named("cf_agents_media");
pub const PROMPTS: Table = Table::named("cf_agents_prompts");
pub const PROPOSALS: Table = Table::named("cf_agents_proposals");
/// The index of the events' words.
pub const EVENTS_SEARCH: Table = Table::named("cf_agents_search");
pub const SESSIONS: Table = Table::named("cf_agents_sessions");
pub const SKILLS: Table = Table::named("cf_agents_skills");
pub const SKILL_LISTINGS: Table = Table::named("cf_agents_skill_listings");
pub const SLICES: Table = Table::named("cf_agents_slices");
pub const WAITING: Table = Table::named("cf_agents_waiting");
