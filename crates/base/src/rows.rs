//! Rows as JSON: one array of values per row. A page of rows is passed into wasm as one
//! text, because reading each cell separately takes two or three calls into JavaScript.

use std::fmt::Write;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::database::{Row, SqlValue};
use crate::error::{Error, Result};
use crate::json::{self, ReadError, push_quoted};

/// Parses an array of rows.
pub fn parse_rows(json: &str) -> Result<Vec<Row>> {
    let rows: Vec<Vec<SqlValue>> = json::decode(json).map_err(no_rows)?;
    Ok(rows.into_iter().map(Row).collect())
}

/// Renders values as a JSON list, as statements accept them.
pub fn list_of(values: &[SqlValue]) -> String {
    let mut list = String::with_capacity(values.len() * 8);
    list.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            list.push(',');
        }
        match value {
            // Writing into a string never fails.
            SqlValue::Integer(number) => drop(write!(list, "{number}")),
            SqlValue::Real(number) => list.push_str(&json::encode(number).unwrap_or_default()),
            SqlValue::Null => list.push_str("null"),
            SqlValue::Text(text) => push_quoted(&mut list, text),
        }
    }
    list.push(']');
    list
}

/// Parses one row.
pub fn parse_row(json: &str) -> Result<Row> {
    json::decode(json).map(Row).map_err(no_rows)
}

fn no_rows(_: ReadError) -> Error {
    Error::storage("rows that are not JSON")
}

impl SqlValue {
    /// Converts a number from the engine, which returns a double for a column of any type.
    pub fn from_number(number: f64) -> Self {
        if number.fract() == 0.0 {
            Self::Integer(number as i64)
        } else {
            Self::Real(number)
        }
    }
}

impl<'de> Deserialize<'de> for SqlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = SqlValue;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a value of a column")
    }

    fn visit_unit<E>(self) -> Result<SqlValue, E> {
        Ok(SqlValue::Null)
    }

    fn visit_i64<E>(self, number: i64) -> Result<SqlValue, E> {
        Ok(SqlValue::from_number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<SqlValue, E> {
        Ok(SqlValue::from_number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<SqlValue, E> {
        Ok(SqlValue::from_number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<SqlValue, E> {
        Ok(SqlValue::Text(text.to_owned()))
    }

    /// A BLOB arrives as an object without fields. No reader needs its bytes.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SqlValue, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(SqlValue::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_type_is_read() {
        let rows = parse_rows(r#"[[1,-2,0.5,"a\u0000\n😀\"",null,{}],[]]"#).unwrap();
        let expected = vec![
            SqlValue::Integer(1),
            SqlValue::Integer(-2),
            SqlValue::Real(0.5),
            SqlValue::Text("a\0\n😀\"".to_owned()),
            SqlValue::Null,
            SqlValue::Null,
        ];
        assert_eq!(rows, [Row(expected), Row(Vec::new())]);
        assert_eq!(parse_rows("[]").unwrap(), []);
        assert!(parse_rows("[[1]").is_err());
        assert!(parse_rows("[1]").is_err());
    }

    #[test]
    fn values_round_trip() {
        let every: String = (0..0x80)
            .map(char::from)
            .chain("é😀\u{2028}".chars())
            .collect();
        let values = vec![
            SqlValue::Null,
            SqlValue::Integer(-7),
            SqlValue::Integer(1 << 53),
            SqlValue::Real(0.1),
            SqlValue::Text(every),
            SqlValue::Text(String::new()),
        ];
        assert_eq!(parse_row(&list_of(&values)).unwrap(), Row(values));
        assert_eq!(list_of(&[]), "[]");
        assert_eq!(list_of(&[SqlValue::Real(f64::NAN)]), "[null]");
    }

    #[test]
    fn a_number_keeps_the_engines_double() {
        // JavaScript prints as few digits as identify a double.
        let row = parse_row("[1152921504606847000,9007199254740992,1e21,2.0]").unwrap();
        let expected = [1 << 60, 1 << 53, i64::MAX, 2].map(SqlValue::Integer);
        assert_eq!(row, Row(expected.to_vec()));
    }
}
