//! The two forms of tests that play at random or try every step. The quick form runs with all
//! other tests. `LONG=1 cargo test -p session-agent-tests --test log random_play` plays the long
//! form of the tests of that name.

/// Whether the long form is wanted.
pub fn is_long() -> bool {
    std::env::var_os("LONG").is_some()
}

/// The number of games of either form.
pub fn games(quick: u64, long: u64) -> u64 {
    if is_long() { long } else { quick }
}
