//! The log as a tree: paths from an event to its root, children, the session's leaf,
//! deletes, forks, and the overlays that hide a range of a path.
//!
//! Most rows of a tree form lines: a row outside the branch index directly follows its
//! parent. A path is therefore read as runs of neighboring rows, with a jump at each
//! row that starts a branch. Reading costs at most about twice the path's length.

pub mod children;
pub mod delete;
pub mod leaf;
pub mod overlay_writes;
pub mod overlays;
pub mod path;
pub mod path_sums;
