//! The log as a tree: paths from an event to its root, children, the leaf that
//! a session goes by, deletes that join what is left, forks, and the overlays
//! that hide a range of a path.
//!
//! Most of a tree is line: a row outside the branch index directly follows its
//! parent. So a path is read as runs of neighbouring rows, with a jump at each
//! row that starts a branch, and never costs more than about twice its length.

pub mod children;
pub mod delete;
pub mod leaf;
pub mod overlays;
pub mod path;
