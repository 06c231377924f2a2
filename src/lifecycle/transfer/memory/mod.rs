//! A session's own context memory in its file: what its blocks are, what they
//! hold, which documents are in its context, and its frozen prompt. The agent's
//! memory is not the session's, and stays where it is.
//!
//! The rule it protects: a file is no way around an operation. A token that may
//! not read or write some of a memory by its operation may not by a file either.

pub mod export;
pub mod import;
mod lines;

use super::lines::Kind;
use crate::access::Rule;
use crate::base::database::{Database, find_row};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::lifecycle::transfer::rules::{
    DEFINE_BLOCK, LOAD_SKILL, PUT_SKILL, SET_BLOCK, SET_ENTRY,
};
use crate::memory::content::{MAX_VERSIONS, MAX_VERSIONS_BYTES};
use crate::memory::entries::MAX_ENTRIES;
use crate::memory::kind::Kind as BlockKind;
use crate::memory::skills::loaded::MAX_LOADED;
use crate::memory::skills::stored::MAX_SKILLS;

/// One sort of lines.
pub struct Sort {
    pub kind: Kind,
    /// Where its rows are, and the column that says whose.
    table: &'static str,
    whose: &'static str,
    /// The operation that shows as much, and those that write as much together. No
    /// operation writes what a frozen prompt says: it counts only for who trusts the
    /// file (`rights.rs`). A document in the context need be in no block, so who
    /// brings one must be able to make the block, too.
    pub read_by: &'static str,
    pub written_by: &'static [Rule],
}

/// In the order of the file.
pub const SORTS: &[Sort] = &[
    Sort {
        kind: Kind::Block,
        table: "cf_agents_blocks",
        whose: "scope",
        read_by: "getBlocks",
        written_by: &[DEFINE_BLOCK],
    },
    Sort {
        kind: Kind::Version,
        table: "cf_agents_block_versions",
        whose: "scope",
        read_by: "getBlockVersions",
        written_by: &[SET_BLOCK],
    },
    Sort {
        kind: Kind::Entry,
        table: "cf_agents_entries",
        whose: "scope",
        read_by: "listEntries",
        written_by: &[SET_ENTRY],
    },
    Sort {
        kind: Kind::Skill,
        table: "cf_agents_skills",
        whose: "scope",
        read_by: "loadSkill",
        written_by: &[PUT_SKILL],
    },
    Sort {
        kind: Kind::Loaded,
        table: "cf_agents_loaded_skills",
        whose: "session_id",
        read_by: "loadSkill",
        written_by: &[DEFINE_BLOCK, PUT_SKILL, LOAD_SKILL],
    },
    Sort {
        kind: Kind::Prompt,
        table: "cf_agents_prompts",
        whose: "scope",
        read_by: "freezePrompt",
        written_by: &[],
    },
];

/// The operations that show what a file of this session would hold of its memory.
pub fn find_readers(db: &dyn Database, session_id: &Id) -> Result<Vec<&'static str>> {
    let mut readers = Vec::new();
    for sort in SORTS {
        let sql = format!(
            "SELECT 1 FROM {} WHERE {} = ?1 LIMIT 1",
            sort.table, sort.whose
        );
        if find_row(db, &sql, &[session_id.as_str().into()])?.is_some() {
            readers.push(sort.read_by);
        }
    }
    Ok(readers)
}

/// Whether a block of this kind holds such rows.
fn can_hold(block: BlockKind, kind: Kind) -> bool {
    match kind {
        Kind::Version => block.has_content(),
        Kind::Entry => block == BlockKind::Searchable,
        Kind::Skill => block == BlockKind::Loadable,
        _ => true,
    }
}

/// Counts the lines of a sort, block by block, against what a block can hold.
#[derive(Default)]
struct Tally {
    of: Option<(Kind, String)>,
    lines: i64,
    bytes: i64,
}

impl Tally {
    /// Whether there is room for one more, of so many bytes.
    fn fits(&mut self, kind: Kind, block: &str, bytes: usize) -> bool {
        let is_same = matches!(&self.of, Some((of, b)) if *of == kind && b == block);
        if !is_same {
            *self = Self {
                of: Some((kind, block.to_owned())),
                ..Self::default()
            };
        }
        self.lines += 1;
        self.bytes = self
            .bytes
            .saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.lines <= most(kind) && (kind != Kind::Version || self.bytes <= MAX_VERSIONS_BYTES)
    }
}

/// Lines of a sort that a block can have; of loaded documents, a session.
fn most(kind: Kind) -> i64 {
    match kind {
        Kind::Version => MAX_VERSIONS,
        Kind::Entry => MAX_ENTRIES,
        Kind::Skill => MAX_SKILLS as i64,
        Kind::Loaded => MAX_LOADED,
        _ => i64::MAX,
    }
}
