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
    /// The operations that write as much together. No operation writes what a frozen prompt says: it counts only for who trusts the
    /// file (`rights.rs`). A document in the context need be in no block, so who
    /// brings one must be able to make the block, too.
    pub written_by: &'static [Rule],
}

/// In the order of the file.
pub const SORTS: &[Sort] = &[
    Sort {
        kind: Kind::Block,
        written_by: &[DEFINE_BLOCK],
    },
    Sort {
        kind: Kind::Version,
        written_by: &[SET_BLOCK],
    },
    Sort {
        kind: Kind::Entry,
        written_by: &[SET_ENTRY],
    },
    Sort {
        kind: Kind::Skill,
        written_by: &[PUT_SKILL],
    },
    Sort {
        kind: Kind::Loaded,
        written_by: &[DEFINE_BLOCK, PUT_SKILL, LOAD_SKILL],
    },
    Sort {
        kind: Kind::Prompt,
        written_by: &[],
    },
];

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
