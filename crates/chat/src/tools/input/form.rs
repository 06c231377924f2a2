//! A form: the flat schema of primitive fields that a tool may ask a user to fill in.

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::tools::mcp::listing::clean;

/// The most fields of one form.
const MAX_FIELDS: usize = 32;

/// The most options of one field.
const MAX_OPTIONS: usize = 100;

/// The longest name of a field, or of a question, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The longest option, in bytes.
const MAX_OPTION_BYTES: usize = 500;

/// The longest title and description that are shown, in bytes. The rest is cut off.
const MAX_TITLE_BYTES: usize = 200;
const MAX_DESCRIPTION_BYTES: usize = 1_000;

/// The longest default text, in bytes. A longer one is left out.
const MAX_DEFAULT_BYTES: usize = 2_000;

/// A page that builds an object from the fields' names would set its prototype.
const FORBIDDEN_NAME: &str = "__proto__";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Form {
    #[serde(rename = "type")]
    kind: FormKind,
    pub properties: Fields,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum FormKind {
    Object,
}

/// The fields in the server's order.
#[derive(Clone, Debug)]
pub struct Fields(Vec<(String, Field)>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldKind {
    String,
    Number,
    Integer,
    Boolean,
    /// Several options of a list.
    Array,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    #[serde(rename = "type")]
    pub kind: FieldKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u32>,
    /// The options of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Choice>>,
    /// The options of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The options without titles, as a server may send them. They become `oneOf`.
    #[serde(default, rename = "enum", skip_serializing)]
    names: Option<Vec<String>>,
    #[serde(default, rename = "enumNames", skip_serializing)]
    titles: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Items {
    #[serde(default)]
    pub any_of: Vec<Choice>,
    #[serde(default, rename = "enum", skip_serializing)]
    names: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Choice {
    #[serde(rename = "const")]
    pub value: String,
    #[serde(default)]
    pub title: String,
}

impl Fields {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, field)| (name.as_str(), field))
    }

    pub fn find(&self, name: &str) -> Option<&Field> {
        let mut fields = self.iter();
        fields
            .find(|(named, _)| *named == name)
            .map(|(_, field)| field)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, field) in &self.0 {
            map.serialize_entry(name, field)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered;
        impl<'de> Visitor<'de> for Ordered {
            type Value = Fields;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with the fields")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields: Vec<(String, Field)> = Vec::new();
                while let Some((name, field)) = map.next_entry::<String, Field>()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom("too many fields"));
                    }
                    fields.retain(|(known, _)| *known != name);
                    fields.push((name, field));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Ordered)
    }
}

/// Whether a name is sent back as it is shown.
pub fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && clean(name, MAX_NAME_BYTES) == name
        && name != FORBIDDEN_NAME
}

impl Form {
    /// Cleans a server's form. Fails with a description of what can't be shown.
    pub fn clean(&mut self) -> Result<(), &'static str> {
        for (name, field) in &mut self.properties.0 {
            if !is_name(name) {
                return Err("a field has an unusual name");
            }
            field.clean()?;
        }
        let fields = &self.properties;
        self.required.retain(|name| fields.find(name).is_some());
        self.required.sort();
        self.required.dedup();
        Ok(())
    }
}

impl Field {
    fn clean(&mut self) -> Result<(), &'static str> {
        clean_text(&mut self.title, MAX_TITLE_BYTES);
        clean_text(&mut self.description, MAX_DESCRIPTION_BYTES);
        let known = ["email", "uri", "date", "date-time"];
        self.format
            .take_if(|format| !known.contains(&format.as_str()));
        if let Some(names) = self.names.take() {
            let titles = self.titles.take().unwrap_or_default();
            let titles = titles.into_iter().map(Some).chain(std::iter::repeat(None));
            let options = names.into_iter().zip(titles);
            self.one_of = Some(options.map(Choice::of).collect());
        }
        if let Some(items) = &mut self.items
            && let Some(names) = items.names.take()
        {
            let options = names.into_iter().map(|name| Choice::of((name, None)));
            items.any_of = options.collect();
        }
        let options = match (self.kind, &mut self.one_of, &mut self.items) {
            (FieldKind::String, None, None) => None,
            (FieldKind::String, Some(options), None) => Some(options),
            (FieldKind::Array, None, Some(items)) => Some(&mut items.any_of),
            (FieldKind::Number | FieldKind::Integer | FieldKind::Boolean, None, None) => None,
            _ => return Err("a field has options that don't fit its type"),
        };
        if let Some(options) = options {
            if !(1..=MAX_OPTIONS).contains(&options.len()) {
                return Err("a field needs 1 to 100 options");
            }
            for option in options {
                option.clean()?;
            }
        }
        if let Some(default) = self.default.take() {
            let is_short = |text: &str| text.len() <= MAX_DEFAULT_BYTES;
            let fits = default.as_str().is_none_or(is_short) && self.check(&default).is_ok();
            self.default = fits.then_some(default);
        }
        Ok(())
    }

    /// Checks a value of this field. Fails with the rest of a sentence about the field.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match (self.kind, value) {
            (FieldKind::String, Value::String(text)) => self.check_text(text),
            (FieldKind::Boolean, Value::Bool(_)) => Ok(()),
            (FieldKind::Number | FieldKind::Integer, Value::Number(number)) => {
                self.check_number(number)
            }
            (FieldKind::Array, Value::Array(values)) => self.check_list(values),
            (FieldKind::String, _) => Err("must be a string".to_owned()),
            (FieldKind::Boolean, _) => Err("must be `true` or `false`".to_owned()),
            (FieldKind::Number, _) => Err("must be a number".to_owned()),
            (FieldKind::Integer, _) => Err("must be a whole number".to_owned()),
            (FieldKind::Array, _) => Err("must be a list of options".to_owned()),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        if let Some(options) = &self.one_of {
            return check_option(options, text);
        }
        let letters = text.chars().count();
        if let Some(least) = self.min_length
            && letters < least as usize
        {
            return Err(format!("must have at least {least} characters"));
        }
        if let Some(most) = self.max_length
            && letters > most as usize
        {
            return Err(format!("must have at most {most} characters"));
        }
        match self.format.as_deref() {
            Some("email") if !is_email(text) => Err("must be an email address".to_owned()),
            Some("uri") if !is_uri(text) => Err("must be a URI with its scheme".to_owned()),
            Some("date") if !is_date(text) => Err("must be a date such as `2026-01-31`".to_owned()),
            Some("date-time") if !is_time(text) => {
                Err("must be a time such as `2026-01-31T12:00:00Z`".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn check_number(&self, number: &Number) -> Result<(), String> {
        let value = number.as_f64().unwrap_or(f64::NAN);
        if self.kind == FieldKind::Integer && value.fract() != 0.0 {
            return Err("must be a whole number".to_owned());
        }
        if let Some(least) = &self.minimum
            && least.as_f64().is_some_and(|least| value < least)
        {
            return Err(format!("must be at least {least}"));
        }
        if let Some(most) = &self.maximum
            && most.as_f64().is_some_and(|most| value > most)
        {
            return Err(format!("must be at most {most}"));
        }
        Ok(())
    }

    fn check_list(&self, values: &[Value]) -> Result<(), String> {
        let options = self.items.as_ref().map_or(&[][..], |items| &items.any_of);
        for (index, value) in values.iter().enumerate() {
            let Value::String(text) = value else {
                return Err("must be a list of options".to_owned());
            };
            check_option(options, text)?;
            if values.iter().take(index).any(|before| before == value) {
                return Err("must not repeat an option".to_owned());
            }
        }
        if let Some(least) = self.min_items
            && values.len() < least as usize
        {
            return Err(format!("must have at least {least} options"));
        }
        if let Some(most) = self.max_items
            && values.len() > most as usize
        {
            return Err(format!("must have at most {most} options"));
        }
        Ok(())
    }
}

impl Choice {
    fn of((value, title): (String, Option<String>)) -> Self {
        let title = title.unwrap_or_else(|| value.clone());
        Self { value, title }
    }

    fn clean(&mut self) -> Result<(), &'static str> {
        if self.value.len() > MAX_OPTION_BYTES || clean(&self.value, MAX_OPTION_BYTES) != self.value
        {
            return Err("an option has unusual characters or is too long");
        }
        self.title = clean(&self.title, MAX_TITLE_BYTES);
        if self.title.trim().is_empty() {
            self.title.clone_from(&self.value);
        }
        Ok(())
    }
}

fn check_option(options: &[Choice], text: &str) -> Result<(), String> {
    if options.iter().any(|option| option.value == text) {
        Ok(())
    } else {
        Err("must be one of the options".to_owned())
    }
}

fn clean_text(text: &mut Option<String>, max_bytes: usize) {
    let cleaned = text.take().map(|text| clean(&text, max_bytes));
    *text = cleaned.filter(|text| !text.trim().is_empty());
}

fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.contains(char::is_whitespace)
}

fn is_uri(text: &str) -> bool {
    let parts = text.split_once(':');
    parts.is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            && !rest.is_empty()
    }) && !text.contains(char::is_whitespace)
}

/// Whether a text has the form of the pattern: `0` is a digit, any other letter itself.
fn has_form(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text
            .bytes()
            .zip(pattern.bytes())
            .all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                _ => byte == wanted,
            })
}

fn is_date(text: &str) -> bool {
    let number = |from: usize, to: usize| {
        let digits = text
            .get(from..to)
            .and_then(|digits| digits.parse::<u32>().ok());
        digits.unwrap_or(0)
    };
    has_form(text, "0000-00-00")
        && (1..=12).contains(&number(5, 7))
        && (1..=31).contains(&number(8, 10))
}

fn is_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let (clock, rest) = time.split_at_checked("00:00:00".len()).unwrap_or_default();
    let zone = match rest.strip_prefix('.') {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = zone.strip_prefix(['+', '-']);
    is_date(date)
        && has_form(clock, "00:00:00")
        && (zone.eq_ignore_ascii_case("z") || offset.is_some_and(|zone| has_form(zone, "00:00")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::json;
    use serde_json::json;

    fn form(fields: &Value) -> Result<Form, String> {
        let schema =
            json!({"type": "object", "properties": fields, "required": ["a", "gone", "a"]});
        let mut form: Form = json::decode(&schema.to_string()).map_err(|_| "no form".to_owned())?;
        form.clean()?;
        Ok(form)
    }

    fn field(field: &Value) -> Field {
        let form = form(&json!({ "a": field })).unwrap();
        form.properties.find("a").unwrap().clone()
    }

    #[test]
    fn options_become_one_form_without_unknown_fields() {
        let encoded = form(&json!({
            "a": {"type": "string", "enum": ["x", "y"], "enumNames": ["X\u{202e}"], "default": "z", "pattern": "^"},
            "b": {"type": "array", "items": {"type": "string", "enum": ["p"]}, "maxItems": 1, "default": ["p"]},
            "c": {"type": "string", "title": "  ", "description": "d".repeat(2_000), "format": "regex"},
        }));
        let encoded = json::decode_tree(&json::encode(&encoded.unwrap()).unwrap()).unwrap();
        let cut = format!("{}…", "d".repeat(997));
        assert_eq!(
            encoded,
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "y"}]},
                "b": {"type": "array", "items": {"anyOf": [{"const": "p", "title": "p"}]}, "maxItems": 1, "default": ["p"]},
                "c": {"type": "string", "description": cut},
            }})
        );
    }

    #[test]
    fn the_fields_keep_their_order() {
        let text =
            r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"}}}"#;
        let form: Form = json::decode(text).unwrap();
        assert_eq!(json::encode(&form).unwrap(), text);
    }

    #[test]
    fn a_form_that_cannot_be_displayed_is_refused() {
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        let many: Vec<String> = (0..=MAX_OPTIONS).map(|n| n.to_string()).collect();
        for fields in [
            json!({ "a": {"type": "object"} }),
            json!({ "a": {"type": "array"} }),
            json!({ "a": {"type": "array", "items": {"type": "string"}} }),
            json!({ "a": {"type": "number", "enum": ["1"]} }),
            json!({ "a": {"type": "string", "enum": []} }),
            json!({ "a": {"type": "string", "enum": many} }),
            json!({ "a": {"type": "string", "enum": ["\u{202e}"]} }),
            json!({ "a": "string" }),
            json!({ "__proto__": {"type": "string"} }),
            json!({ "": {"type": "string"} }),
            json!({ long: {"type": "string"} }),
            json!([]),
        ] {
            assert!(form(&fields).is_err(), "{fields}");
        }
        let fields = |count: usize| {
            let fields = (0..count).map(|n| (n.to_string(), json!({"type": "string"})));
            Value::Object(fields.collect())
        };
        assert!(form(&fields(MAX_FIELDS)).is_ok());
        assert!(form(&fields(MAX_FIELDS + 1)).is_err());
    }

    #[test]
    fn a_value_is_validated_against_its_field() {
        let ok = |kind: Value, value: Value| assert_eq!(field(&kind).check(&value), Ok(()));
        let no = |kind: Value, value: Value, why: &str| {
            assert_eq!(field(&kind).check(&value), Err(why.to_owned()), "{value}");
        };
        let text = json!({"type": "string", "minLength": 2, "maxLength": 3});
        ok(text.clone(), json!("äöü"));
        no(text.clone(), json!("a"), "must have at least 2 characters");
        no(
            text.clone(),
            json!("abcd"),
            "must have at most 3 characters",
        );
        no(text, json!(5), "must be a string");
        for (format, good, bad) in [
            ("email", "a@b.example", "a b@c"),
            ("email", "a@b", "a@"),
            ("uri", "https://a.example/x", "a.example"),
            ("date", "2026-01-31", "2026-13-01"),
            ("date-time", "2026-01-31T12:00:00.5+01:00", "2026-01-31"),
            ("date-time", "2026-01-31t12:00:00Z", "2026-01-31T12:00"),
        ] {
            let kind = json!({"type": "string", "format": format});
            ok(kind.clone(), json!(good));
            assert!(field(&kind).check(&json!(bad)).is_err(), "{bad}");
        }
        let number = json!({"type": "number", "minimum": 0.5, "maximum": 2});
        ok(number.clone(), json!(0.5));
        no(number.clone(), json!(0.4), "must be at least 0.5");
        no(number.clone(), json!(3), "must be at most 2");
        no(number, json!("1"), "must be a number");
        let integer = json!({"type": "integer"});
        ok(integer.clone(), json!(-3));
        ok(integer.clone(), json!(3.0));
        no(integer, json!(1.5), "must be a whole number");
        ok(json!({"type": "boolean"}), json!(false));
        no(
            json!({"type": "boolean"}),
            json!(0),
            "must be `true` or `false`",
        );
        let options = json!({"type": "string", "oneOf": [{"const": "x", "title": "X"}]});
        ok(options.clone(), json!("x"));
        no(options, json!("X"), "must be one of the options");
        let list = json!({"type": "array", "items": {"enum": ["x", "y", "z"]}, "minItems": 1, "maxItems": 2});
        ok(list.clone(), json!(["y", "x"]));
        no(list.clone(), json!([]), "must have at least 1 options");
        no(
            list.clone(),
            json!(["x", "y", "z"]),
            "must have at most 2 options",
        );
        no(list.clone(), json!(["x", "x"]), "must not repeat an option");
        no(list.clone(), json!(["w"]), "must be one of the options");
        no(list, json!("x"), "must be a list of options");
    }
}
