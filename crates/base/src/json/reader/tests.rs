//! Compares the reader with serde_json's: same values, same errors.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::*;

use crate::json::RawValue;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sample<'a> {
    text: Option<String>,
    #[serde(borrow)]
    borrowed: Option<&'a str>,
    pair: Option<(i64, f32)>,
    choice: Option<Choice>,
    inner: Option<Box<Sample<'a>>>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Choice {
    Plain,
    One(u8),
    Two(u8, u8),
    Named { size: u8 },
}

/// Valid JSON texts, and slightly invalid ones.
const TEXTS: &[&str] = &[
    "null",
    " true ",
    "false",
    "0",
    "-0",
    "-1",
    "12",
    "1.5",
    "-1.5e-3",
    "1e2",
    "1E+2",
    "01",
    "1.",
    ".5",
    "-",
    "+1",
    "1e",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "0.1",
    "123456789.123456789",
    "5e-324",
    r#""""#,
    r#""plain""#,
    r#""é and 漢字, longer than one word""#,
    r#""a\"b\\c\/d""#,
    r#""\b\f\n\r\t""#,
    r#""\u0041\u00e9\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\ude00""#,
    r#""\ud83dx""#,
    r#""\u12g4""#,
    r#""\x""#,
    "\"a\nb\"",
    "\"12345678\u{1}\"",
    r#""open"#,
    "\"\\",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "[",
    "]",
    "[[],{}]",
    "{}",
    "{ }",
    r#"{"a":1}"#,
    r#"{ "a" : 1 , "b" : [ ] }"#,
    r#"{"a":1,}"#,
    r#"{,"a":1}"#,
    r#"{"a"}"#,
    r#"{"a" 1}"#,
    r#"{"a":}"#,
    r#"{a:1}"#,
    r#"{"a":1"#,
    r#"{"a":1]"#,
    r#"{"\u0061":"\n"}"#,
    "nul",
    "nulll",
    "tru",
    "1 2",
    "{} x",
    "",
    "  ",
    "\u{0}",
];

#[test]
fn documents_are_parsed_as_by_serde_json() {
    for text in TEXTS {
        let (ours, theirs) = (decode::<Value>(text), serde_json::from_str::<Value>(text));
        assert_eq!(ours.ok(), theirs.ok(), "{text}");
        let (ours, theirs) = (
            decode::<&RawValue>(text),
            serde_json::from_str::<&serde_json::value::RawValue>(text),
        );
        let ours = ours.ok().map(RawValue::get);
        let theirs = theirs.ok().map(|raw| raw.get());
        // Only a skipped text may contain a number that fits no type, or half of a surrogate
        // pair; in both readers.
        assert_eq!(ours, theirs, "{text}");
    }
}

#[test]
fn fields_are_decoded_as_by_serde_json() {
    for text in [
        r#"{}"#,
        r#"{"text":"a\nb","borrowed":"plain","pair":[-7,0.25]}"#,
        r#"{"text":null,"inner":{"inner":{"text":"x"}}}"#,
        r#"{"choice":"plain"}"#,
        r#"{"choice":{"one":3}}"#,
        r#"{"choice":{"two":[3,4]}}"#,
        r#"{"choice":{"named":{"size":5}}}"#,
        r#"{"choice":{"plain":null}}"#,
        r#"{"choice":{}}"#,
        r#"{"choice":{"one":3,"two":[3,4]}}"#,
        r#"{"choice":"one"}"#,
        r#"{"choice":{"one":256}}"#,
        r#"{"pair":[1]}"#,
        r#"{"pair":[1,2,3]}"#,
        r#"{"borrowed":"\n"}"#,
        r#"{"text":"a","text":"b"}"#,
    ] {
        let (ours, theirs) = (decode::<Sample<'_>>(text), serde_json::from_str(text));
        assert_eq!(ours.ok(), theirs.ok(), "{text}");
    }
}

#[test]
fn the_error_path_locates_the_refused_value() {
    for (text, field) in [
        (r#"{"inner":{"pair":[1,"x"]}}"#, "inner.pair[1]"),
        (r#"{"inner":{"inner":{"txet":1}}}"#, "inner.inner.txet"),
        (
            r#"{"inner":{"choice":{"two":[1,true]}}}"#,
            "inner.choice[1]",
        ),
        (r#"{"choice":1}"#, "choice"),
        (r#"[{"text":1}]"#, "body"),
    ] {
        let refused = decode::<Sample<'_>>(text).unwrap_err().refusal(text);
        assert_eq!(refused.details()["field"], field, "{text}");
    }
    let text = r#"[{"text":"a"},{"text":1}]"#;
    let refused = decode::<Vec<Sample<'_>>>(text).unwrap_err().refusal(text);
    assert_eq!(refused.message, "`[1].text` must be a string.");
}

#[test]
fn types_nest_as_deep_as_in_serde_json_and_raw_text_deeper() {
    for (depth, is_read) in [(127, true), (128, false)] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(
            serde_json::from_str::<Value>(&text).is_ok(),
            is_read,
            "{depth}"
        );
        assert_eq!(decode::<Value>(&text).is_ok(), is_read, "{depth}");
    }
    let text = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(decode::<&RawValue>(&text).unwrap().get(), text);
}

#[derive(Deserialize)]
struct Borrowing<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let plain: Borrowing<'_> = decode(r#"{"text":"a","raw":[1, 2]}"#).unwrap();
    assert!(matches!(plain.text, Cow::Borrowed("a")));
    assert_eq!(plain.raw.unwrap().get(), "[1, 2]");
    let escaped: Borrowing<'_> = decode(r#"{"text":"\n"}"#).unwrap();
    assert!(matches!(escaped.text, Cow::Owned(_)));
    assert!(escaped.raw.is_none());
}

#[test]
fn an_integral_float_is_read_as_an_integer() {
    assert_eq!(decode::<i64>("147334231.0").unwrap(), 147_334_231);
    assert_eq!(decode::<u32>("5e0").unwrap(), 5);
    assert_eq!(decode::<Option<i64>>("-2.0").unwrap(), Some(-2));
    for text in ["5.5", "1e300", "9007199254740993.0"] {
        assert!(decode::<i64>(text).is_err(), "{text}");
    }
    assert!(decode::<u32>("-2.0").is_err());
}
