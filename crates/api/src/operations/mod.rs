//! The operations. Each is a struct whose fields are the input and whose doc comment is the
//! public documentation. `api/table.rs` lists them.

pub mod agent;
pub mod append_messages;
pub mod backups;
pub mod bookmarks;
pub mod chat;
pub mod chat_tools;
pub mod compaction;
pub mod directory;
pub mod erase_agents;
pub mod events;
pub mod foreign;
pub mod learning;
pub mod memory_blocks;
pub mod memory_entries;
pub mod memory_prompt;
pub mod memory_skills;
pub mod memory_tools;
pub mod mentions;
pub mod message_reads;
pub mod message_writes;
pub mod next_request;
pub mod receipts;
pub mod restore_backup;
pub mod retention;
pub mod run_turn;
pub mod search;
pub mod sessions;
pub mod stats;
pub mod tokens;
pub mod tree;
pub mod turns;
pub mod usage;
pub mod verify;
pub mod working_context;
pub mod writers;
