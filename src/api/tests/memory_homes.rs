//! Blocks that live elsewhere.
