//! The quick and the long form of random and exhaustive tests. The quick form runs with all other
//! tests. `LONG=1 cargo test -p session-agent-tests --test log random_play` runs the long form.

/// Whether the long form is wanted.
pub fn is_long() -> bool {
    std::env::var_os("LONG").is_some()
}

/// Whether a case is tried: every case in the long form, one in `of` in the quick form.
pub fn is_tried(number: usize, of: usize) -> bool {
    is_long() || number.is_multiple_of(of)
}

/// The number of games to play.
pub fn games(quick: u64, long: u64) -> u64 {
    if is_long() { long } else { quick }
}
