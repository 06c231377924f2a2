//! What `FromJson` reads is what serde's `Deserialize` reads, and it refuses the same in
//! the same words.

use std::borrow::Cow;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::base::json::{FromJson, decode, nullable, parse};

/// The same fields, read by each of the two.
macro_rules! by_both {
    ($($item:tt)*) => {
        mod ours {
            use super::*;
            #[derive(Debug, FromJson)]
            $($item)*
        }
        mod serdes {
            use super::*;
            #[derive(Debug, Deserialize)]
            $($item)*
        }
    };
}

fn five() -> i64 {
    5
}

by_both! {
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Strict {
        pub session_id: String,
        #[serde(rename = "type")]
        pub kind: bool,
        pub a_limit: Option<i64>,
        #[serde(default)]
        pub tags: Vec<String>,
        #[serde(default = "five")]
        pub count: i64,
        #[serde(default, deserialize_with = "nullable")]
        pub cleared: Option<Option<i64>>,
        #[serde(deserialize_with = "nullable")]
        pub required: Option<Option<i64>>,
        pub inner: Option<Box<Strict>>,
        #[serde(skip)]
        pub never: Option<i64>,
    }
}

fn read<T: DeserializeOwned + Debug>(text: &str) -> String {
    match parse::<T>(text.as_bytes()) {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn the_same_is_read_and_refused_in_the_same_words() {
    let whole = r#"{"sessionId":"a","type":true,"aLimit":1,"tags":["x"],"count":2,"cleared":null,"required":3}"#;
    let mut texts = vec![
        whole.to_owned(),
        r#"{"sessionId":"a","type":true,"required":null,"aLimit":null}"#.to_owned(),
        r#"{"required":1}"#.to_owned(),
        r#"{"sessionId":"a","type":true}"#.to_owned(),
        r#"{"sessionId":"a","type":1,"required":1}"#.to_owned(),
        r#"{"sessionId":"a","sessionId":"b","type":true,"required":1}"#.to_owned(),
        r#"{"sessionId":"a","session_id":"b"}"#.to_owned(),
        r#"{"never":1}"#.to_owned(),
        r#"{"tags":["a",1]}"#.to_owned(),
        r#"{"tags":null}"#.to_owned(),
        r#"{"\u0074ype":false,"sessionId":"\u00e9","required":1}"#.to_owned(),
        r#"{"inner":{"inner":{"type":1}}}"#.to_owned(),
        r#"{"inner":{"inner":{"unknown":1}}}"#.to_owned(),
        r#"{"inner":{"inner":{"sessionId":"a"}}}"#.to_owned(),
        r#"{"inner":[]}"#.to_owned(),
        r#"{"inner":"x"}"#.to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
    ];
    texts.extend((0..whole.len()).map(|end| whole.chars().take(end).collect()));
    for text in texts {
        assert_eq!(
            read::<ours::Strict>(&text),
            read::<serdes::Strict>(&text),
            "{text}"
        );
    }
    assert!(read::<ours::Strict>(whole).starts_with("Strict"));
}

mod with_default {
    use super::*;

    by_both! {
        #[serde(rename_all = "camelCase", default)]
        pub struct Open {
            pub first_word: String,
            pub number: i64,
            pub maybe: Option<bool>,
        }
    }

    impl Default for ours::Open {
        fn default() -> Self {
            Self {
                first_word: "one".to_owned(),
                number: 7,
                maybe: Some(true),
            }
        }
    }

    impl Default for serdes::Open {
        fn default() -> Self {
            Self {
                first_word: "one".to_owned(),
                number: 7,
                maybe: Some(true),
            }
        }
    }

    #[test]
    fn a_struct_with_a_default_is_read_over_it() {
        for text in [
            "{}",
            r#"{"number":1}"#,
            r#"{"maybe":null,"firstWord":"two"}"#,
            r#"{"another":{"number":2},"number":3}"#,
            r#"{"number":1,"number":2}"#,
            r#"{"number":"x"}"#,
        ] {
            assert_eq!(
                read::<ours::Open>(text),
                read::<serdes::Open>(text),
                "{text}"
            );
        }
        assert_eq!(parse::<ours::Open>(b"{}").unwrap().number, 7);
    }
}

#[derive(FromJson)]
struct Borrowing<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
}

#[test]
fn what_can_be_borrowed_is() {
    let plain: Borrowing<'_> = decode(r#"{"text":"a","raw":[1, 2]}"#).unwrap();
    assert!(matches!(plain.text, Cow::Borrowed("a")));
    assert_eq!(plain.raw.unwrap().get(), "[1, 2]");
    let escaped: Borrowing<'_> = decode(r#"{"text":"\n"}"#).unwrap();
    assert!(matches!(escaped.text, Cow::Owned(_)));
    assert!(escaped.raw.is_none());
}
