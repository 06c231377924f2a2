//! A session's own context memory in its file: what its blocks are, what they
//! hold, which documents are in its context, and its frozen prompt. The agent's
//! memory is not the session's, and stays where it is.
//!
//! The rule it protects: a file is no way around an operation. A token that may
//! not read or write some of a memory by its operation may not by a file either.

pub mod export;
pub mod import;
mod lines;

use super::lines::LineKind;
use crate::access::AccessRule;
use crate::lifecycle::transfer::rules::{
    DEFINE_BLOCK, LOAD_SKILL, PUT_SKILL, SET_BLOCK, SET_ENTRY,
};
use crate::memory::content::{MAX_VERSIONS, MAX_VERSIONS_BYTES};
use crate::memory::entries::MAX_ENTRIES;
use crate::memory::kind::BlockKind;
use crate::memory::skills::loaded::MAX_LOADED;
use crate::memory::skills::stored::MAX_SKILLS;

/// One sort of lines.
pub struct MemoryLineKind {
    pub kind: LineKind,
    /// The operations that write as much together. No operation writes what a frozen prompt says: it counts only for who trusts the
    /// file (`rights.rs`). A document in the context need be in no block, so who
    /// brings one must be able to make the block, too.
    pub written_by: &'static [AccessRule],
}

/// In the order of the file.
pub const SORTS: &[MemoryLineKind] = &[
    MemoryLineKind {
        kind: LineKind::Block,
        written_by: &[DEFINE_BLOCK],
    },
    MemoryLineKind {
        kind: LineKind::Version,
        written_by: &[SET_BLOCK],
    },
    MemoryLineKind {
        kind: LineKind::Entry,
        written_by: &[SET_ENTRY],
    },
    MemoryLineKind {
        kind: LineKind::Skill,
        written_by: &[PUT_SKILL],
    },
    MemoryLineKind {
        kind: LineKind::Loaded,
        written_by: &[DEFINE_BLOCK, PUT_SKILL, LOAD_SKILL],
    },
    MemoryLineKind {
        kind: LineKind::Prompt,
        written_by: &[],
    },
];

/// Whether a block of this kind holds such rows.
fn can_hold(block: BlockKind, kind: LineKind) -> bool {
    match kind {
        LineKind::Version => block.has_content(),
        LineKind::Entry => block == BlockKind::Searchable,
        LineKind::Skill => block == BlockKind::Loadable,
        _ => true,
    }
}

/// Counts the lines of a sort, block by block, against what a block can hold.
#[derive(Default)]
struct LineCounter {
    of: Option<(LineKind, String)>,
    lines: i64,
    bytes: i64,
}

impl LineCounter {
    /// Whether there is room for one more, of so many bytes.
    fn fits(&mut self, kind: LineKind, block: &str, bytes: usize) -> bool {
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
        self.lines <= most(kind) && (kind != LineKind::Version || self.bytes <= MAX_VERSIONS_BYTES)
    }
}

/// Lines of a sort that a block can have; of loaded documents, a session.
fn most(kind: LineKind) -> i64 {
    match kind {
        LineKind::Version => MAX_VERSIONS,
        LineKind::Entry => MAX_ENTRIES,
        LineKind::Skill => MAX_SKILLS as i64,
        LineKind::Loaded => MAX_LOADED,
        _ => i64::MAX,
    }
}
