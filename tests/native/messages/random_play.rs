//! Random play against a naive tree in memory: append anywhere, delete anything, choose
//! leaves, update, fork, clear, cover ranges with overlays. Every read is compared with
//! the tree.

use std::ops::RangeInclusive;

use serde_json::json;

use crate::Alice;
use crate::shared::long::games;
use crate::shared::naive_tree::{NaiveTree, Rules};
pub use base::testing::Dice;

/// Many short games and some long ones, in the quick and the long form. A long game is compared
/// after every move, a short one after some of its moves.
const SHORT_GAMES: (u64, u64) = (150, 2_000);
const SHORT_MOVES: usize = 16;
const LONG_GAMES: (u64, u64) = (12, 40);
const LONG_MOVES: usize = 80;

#[test]
fn reads_match_a_naive_tree_in_many_short_games() {
    play(1..=games(SHORT_GAMES.0, SHORT_GAMES.1), SHORT_MOVES, 5);
}

#[test]
fn reads_match_a_naive_tree_in_long_games() {
    play(1..=games(LONG_GAMES.0, LONG_GAMES.1), LONG_MOVES, 1);
}

/// Appends in a learning agent also record their time, and those in a searched agent also index
/// words.
fn agent(seed: u64) -> Alice {
    match seed % 3 {
        0 => Alice::with_session(),
        1 => Alice::learner(json!({})),
        _ => {
            let alice = Alice::with_session();
            alice.ok("search", json!({"query": "anything"}));
            alice
        }
    }
}

fn play(seeds: RangeInclusive<u64>, moves: usize, compared_every: usize) {
    for seed in seeds {
        let alice = agent(seed);
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let rules = Rules {
            name: format!("game {seed}"),
            moves: 0..moves,
            compared_every,
        };
        rules.play(&alice, NaiveTree::default(), &mut dice);
        // A check of all tables takes as long as several games.
        if seed % 10 == 0 {
            alice.assert_consistent(&rules.name);
        }
    }
}
