//! A session's own context memory in its file: its blocks, their contents, the documents
//! in its context, and its frozen prompt. The agent's memory is not the session's, so it
//! is not in the file.
//!
//! The rule it protects: a file is not a way around an operation. If a token may not use
//! the operation that reads or writes some memory, it may not export or import that
//! memory.

pub mod export;
pub mod import;
pub mod lines;

use super::lines::LineKind;
use crate::transfer::rules::{DEFINE_BLOCK, LOAD_SKILL, PUT_SKILL, SET_BLOCK, SET_ENTRY};
use access::AccessRule;
use memory::content::{MAX_VERSIONS, MAX_VERSIONS_BYTES};
use memory::entry_rows::MAX_ENTRIES;
use memory::kind::BlockKind;
use memory::past::{MAX_DELETED, MAX_ENTRY_VERSIONS};
use memory::skills::loaded::MAX_LOADED;
use memory::skills::stored::MAX_SKILLS;

/// A type of line, and the right to write it.
pub struct MemoryLineKind {
    pub kind: LineKind,
    /// The operations that together write the same data. No operation writes a frozen
    /// prompt: it counts only if the sender trusts the file (`rights.rs`). A loaded
    /// document may be in no block, so its sender must be able to define the block, too.
    pub written_by: &'static [AccessRule],
}

/// The types of memory lines, in the order of the file.
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
        kind: LineKind::Past,
        written_by: &[SET_ENTRY, PUT_SKILL],
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

/// Whether a block of this kind can contain rows of this type.
fn can_contain(block: BlockKind, kind: LineKind) -> bool {
    match kind {
        LineKind::Version => block.has_content(),
        LineKind::Entry => block == BlockKind::Searchable,
        LineKind::Skill => block == BlockKind::Loadable,
        LineKind::Past => !block.has_content(),
        _ => true,
    }
}

/// Counts the lines of each type and block against the limits of a block.
#[derive(Default)]
struct LineCounter {
    of: Option<(LineKind, String)>,
    lines: i64,
    bytes: i64,
}

impl LineCounter {
    /// Counts one more line of this many bytes. `false`: the line exceeds the limits.
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

/// The maximum number of lines of a type per block; of loaded documents, per session.
fn most(kind: LineKind) -> i64 {
    match kind {
        LineKind::Version => MAX_VERSIONS,
        LineKind::Entry => MAX_ENTRIES,
        LineKind::Skill => MAX_SKILLS as i64,
        LineKind::Past => (MAX_ENTRIES + MAX_DELETED) * MAX_ENTRY_VERSIONS,
        LineKind::Loaded => MAX_LOADED,
        _ => i64::MAX,
    }
}
