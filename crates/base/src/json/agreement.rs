//! Compares the reader and the writer with serde_json's: random documents and numbers, whole and
//! damaged. Each test runs for a second or two. To run it for as long as you like, with a seed that
//! is printed:
//!
//! ```text
//! DOCUMENTS=100000000 SEED=7 cargo test --release json::agreement -- --nocapture
//! ```

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::cursor::{MAX_INTEGER, find_fault};
use super::{count_values, decode, decode_tree, encode, text, written_bytes};
use crate::json::RawValue;
use crate::testing::Dice;

/// Runs `default` rounds, or as many as `DOCUMENTS` gives. The seed is in every failure.
fn play(default: u64, mut round: impl FnMut(&mut Dice, &str)) {
    let given = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let rounds = given("DOCUMENTS").unwrap_or(default);
    let seed = given("SEED").unwrap_or(1);
    println!("SEED={seed}: {rounds} rounds");
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for number in 0..rounds {
        round(&mut dice, &format!("SEED={seed}, round {number}"));
    }
}

fn pick<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    of[dice.roll(of.len())]
}

fn bits(dice: &mut Dice) -> u64 {
    (dice.roll(1 << 31) as u64) << 33 | (dice.roll(1 << 31) as u64) << 2 | dice.roll(4) as u64
}

fn digits(dice: &mut Dice, most: usize) -> String {
    let count = 1 + dice.roll(most);
    (0..count)
        .map(|_| char::from(b'0' + dice.roll(10) as u8))
        .collect()
}

/// A number as JSON spells it: usual ones, any double, neighbors of the middle between two
/// doubles, and long or tiny ones.
fn number(dice: &mut Dice) -> String {
    let sign = pick(dice, &["", "", "-"]);
    let double = f64::from_bits(bits(dice) >> 1);
    match dice.roll(9) {
        0 => format!("{sign}{}", dice.roll(1_000)),
        1 => format!("{sign}{}", bits(dice)),
        2 => format!("{sign}{}.{}", dice.roll(100), digits(dice, 4)),
        3 if double.is_finite() => format!("{sign}{double:e}"),
        4 if double.is_finite() => format!("{sign}{double:.0$e}", dice.roll(60)),
        5 => {
            // Exactly between two doubles, or next to the middle.
            let odd = u128::from(bits(dice) | 1 << 53) & ((1 << 54) - 1) | 1;
            let middle = odd << dice.roll(70);
            let after = pick(dice, &["", ".0", ".00000000000000000001", "e0", "e-5"]);
            format!("{sign}{middle}{after}")
        }
        6 => format!(
            "{sign}{}.{}e{}",
            1 + dice.roll(9),
            digits(dice, 30),
            dice.roll(700) as i64 - 350
        ),
        7 => format!(
            "{sign}0.{}{}e{}",
            "0".repeat(dice.roll(400)),
            digits(dice, 25),
            dice.roll(500)
        ),
        _ => format!(
            "{sign}{}{}{}{}",
            1 + dice.roll(9),
            digits(dice, 40),
            pick(dice, &["e", "E", "e+", "E-"]),
            digits(dice, 3)
        ),
    }
}

fn string(dice: &mut Dice) -> String {
    let pieces: String = (0..dice.roll(6))
        .map(|_| {
            pick(
                dice,
                &[
                    "a",
                    "plain text of more than sixteen bytes",
                    "é",
                    "漢字",
                    "🌦️",
                    " ",
                    "{[,:]}",
                    "\\n",
                    "\\\"",
                    "\\\\",
                    "\\/",
                    "\\u0041",
                    "\\u00e9",
                    "\\ud83d\\ude00",
                    "\\uD83D\\uDE00",
                    "\\u0000",
                    "\\ud83d",
                    "\\ude00",
                    "\u{7f}",
                    "\u{2028}",
                ],
            )
        })
        .collect();
    format!("\"{pieces}\"")
}

fn document(dice: &mut Dice, depth: usize) -> String {
    let space = |dice: &mut Dice| pick(dice, &["", "", "", " ", "\n", "\t \r\n"]);
    let sides = if depth > 5 { 6 } else { 9 };
    let value = match dice.roll(sides) {
        0 => pick(dice, &["true", "false", "null"]).to_owned(),
        1 | 2 => number(dice),
        3..=5 => string(dice),
        6 => {
            let items: Vec<String> = (0..dice.roll(5))
                .map(|_| document(dice, depth + 1))
                .collect();
            format!("[{}{}]", space(dice), items.join(","))
        }
        _ => {
            let fields: Vec<String> = (0..dice.roll(5))
                .map(|_| {
                    let name = match dice.roll(3) {
                        0 => string(dice),
                        // Some names occur twice.
                        _ => pick(dice, &["\"a\"", "\"b\"", "\"\\u0061\""]).to_owned(),
                    };
                    let value = document(dice, depth + 1);
                    format!("{}{name}{}:{value}", space(dice), space(dice))
                })
                .collect();
            format!("{{{}{}}}", space(dice), fields.join(","))
        }
    };
    format!("{}{value}{}", space(dice), space(dice))
}

/// The text with a character removed, added or replaced.
fn damage(dice: &mut Dice, whole: &str) -> String {
    let mut letters: Vec<char> = whole.chars().collect();
    for _ in 0..1 + dice.roll(2) {
        let at = dice.roll(letters.len() + 1);
        let mark = pick(
            dice,
            &[
                "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "u", "\n", "\u{1}",
                "é", "t", " ",
            ],
        );
        let mark = mark.chars().next().unwrap();
        match dice.roll(3) {
            0 => letters.insert(at, mark),
            1 if at < letters.len() => letters[at] = mark,
            _ if at < letters.len() => drop(letters.remove(at)),
            _ => letters.push(mark),
        }
    }
    letters.into_iter().collect()
}

fn same_reading(json: &str, round: &str) -> bool {
    let theirs = serde_json::from_str::<Value>(json).ok();
    let ours = decode_tree(json).ok();
    assert_eq!(ours, theirs, "{round}: {json}");
    // Zero and minus zero are equal, and are written differently.
    let written = ours.as_ref().map(text);
    let expected = theirs.map(|value| serde_json::to_string(&value).unwrap());
    assert_eq!(written, expected, "{round}: {json}");

    // A skipped value may contain parts that no value can: half of a pair, or a number that is too
    // large.
    let skipped = serde_json::from_str::<IgnoredAny>(json);
    assert_eq!(
        decode::<IgnoredAny>(json).is_ok(),
        skipped.is_ok(),
        "{round}: {json}"
    );
    assert_eq!(
        find_fault(json).is_none(),
        skipped.is_ok(),
        "{round}: {json}"
    );
    let raw = decode::<&RawValue>(json).ok().map(RawValue::get);
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(json).ok();
    assert_eq!(raw, theirs.map(|raw| raw.get()), "{round}: {json}");

    let list = format!("[{json}]");
    let listed = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(&list).ok();
    let count = listed.map(|values| values.len()).filter(|count| *count > 0);
    assert_eq!(
        count_values(json.as_bytes(), &[r#"{"a":"#]),
        count,
        "{round}: {json}"
    );
    skipped.is_ok()
}

#[test]
fn documents_round_trip_as_in_serde_json() {
    let (mut valid, mut broken) = (0, 0);
    play(20_000, |dice, round| {
        let whole = document(dice, 0);
        assert!(same_reading(&whole, round), "{round}: {whole}");
        for _ in 0..2 {
            if same_reading(&damage(dice, &whole), round) {
                valid += 1;
            } else {
                broken += 1;
            }
        }
    });
    assert!(valid > 1_000 && broken > 1_000, "{valid} {broken}");
}

#[test]
fn numbers_are_parsed_bit_for_bit() {
    play(200_000, |dice, round| {
        let json = number(dice);
        let exact: f64 = json.parse().unwrap();
        let ours = decode::<f64>(&json).ok().map(f64::to_bits);
        let theirs = serde_json::from_str::<f64>(&json).ok().map(f64::to_bits);
        assert_eq!(ours, theirs, "{round}: {json}");
        let finite = exact.is_finite().then(|| exact.to_bits());
        assert_eq!(ours, finite, "{round}: {json}");
        // serde_json refuses `5.0` and `5e0` as integers.
        let is_whole = exact.fract() == 0.0 && exact.abs() <= MAX_INTEGER as f64;
        let whole = is_whole.then_some(exact as i64);
        assert_eq!(
            decode::<u64>(&json).ok(),
            serde_json::from_str(&json)
                .ok()
                .or(whole.and_then(|whole| u64::try_from(whole).ok())),
            "{round}: {json}"
        );
        assert_eq!(
            decode::<i64>(&json).ok(),
            serde_json::from_str(&json).ok().or(whole),
            "{round}: {json}"
        );
    });
}

#[test]
fn numbers_are_formatted_as_in_serde_json() {
    play(200_000, |dice, round| {
        let number = f64::from_bits(bits(dice));
        let written = encode(&number).unwrap();
        assert_eq!(
            written,
            serde_json::to_string(&number).unwrap(),
            "{round}: {number}"
        );
        if number.is_finite() {
            let read = decode::<f64>(&written).unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{round}: {written}");
        }
    });
}

#[test]
fn strings_are_escaped_as_in_serde_json() {
    play(50_000, |dice, round| {
        let letters: String = (0..dice.roll(40))
            .filter_map(|_| {
                let range = [0x30, 0x80, 0x11_0000][dice.roll(3)];
                char::from_u32(dice.roll(range) as u32)
            })
            .collect();
        let written = encode(&letters).unwrap();
        assert_eq!(
            written,
            serde_json::to_string(&letters).unwrap(),
            "{round}: {letters}"
        );
        assert_eq!(written_bytes(&letters) + 2, written.len(), "{round}");
        assert_eq!(decode::<String>(&written).unwrap(), letters, "{round}");
    });
}

/// The fields that a type reads of an object: the loop over them is serde's or ours.
#[derive(Debug, Deserialize, PartialEq)]
struct Read {
    a: Option<Box<Read>>,
    #[serde(default)]
    b: Option<Value>,
}

/// serde_json also accepts an array, for a struct's fields in their order. Ours does not.
fn are_objects(value: &Value) -> bool {
    value.is_object() && (value["a"].is_null() || are_objects(&value["a"]))
}

#[test]
fn types_are_decoded_as_in_serde_json() {
    let mut read = 0;
    play(20_000, |dice, round| {
        let json = document(dice, 0);
        let ours = decode::<Read>(&json).ok();
        read += usize::from(ours.is_some());
        // A skipped value may contain parts that no tree can.
        let Ok(value) = serde_json::from_str(&json) else {
            return;
        };
        let theirs = serde_json::from_str(&json).ok();
        let theirs = theirs.filter(|_| are_objects(&value));
        assert_eq!(ours, theirs, "{round}: {json}");
    });
    assert!(read > 100, "{read}");
}
