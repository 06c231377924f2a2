//! Converts the tools that a server lists into the agent's tools: bounded, cleaned, and
//! with names that every provider accepts.

use crate::json_schema::JsonSchema;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::address::tool_headers::ResolvedHeaders;
use base::json::{self, RawValue, Tree, json};
use context::tools::is_ours;

/// The most bytes of a tool's description. The rest is truncated.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// The most bytes of a tool's schema.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The most bytes of all descriptions and schemas of a server, which are part of every
/// model call. The row that stores them is limited to 2 MB.
const MAX_SERVER_BYTES: usize = 256 << 10;

/// The longest tool name that providers accept.
const MAX_NAME_BYTES: usize = 64;

/// The longest name that a server may give a tool.
const MAX_OWN_NAME_BYTES: usize = 256;

/// The most omitted tools that are reported.
const MAX_LEFT_OUT: usize = 100;

/// Bytes of the hash that identifies a definition.
const DIGEST_BYTES: usize = 16;

/// The schema keyword of an argument that must be repeated in a header.
const HEADER_MARK: &str = "x-mcp-header";

/// The prefix of these headers' names, and the longest name after it.
const HEADER_PREFIX: &str = "mcp-param-";
const MAX_HEADER_NAME_BYTES: usize = 64;

/// A tool of a server, as the server's row stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerDefinition {
    /// The tool's name for models: the server's name, `_`, and the tool's own name.
    #[serde(rename = "shown")]
    pub model_name: String,
    /// The tool's name at its server.
    pub name: String,
    pub description: String,
    pub schema: Box<RawValue>,
    /// The arguments that are repeated in headers, by header.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A hash of the server's whole definition of the tool.
    pub digest: String,
}

/// A tool of a server that models do not get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedTool {
    /// The tool's name at its server.
    pub name: String,
    pub reason: String,
}

/// The tools of a list that models get, and those that were omitted.
#[derive(Default)]
pub struct ServerListing {
    pub tools: Vec<ServerDefinition>,
    pub left_out: Vec<OmittedTool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    input_schema: Tree,
    #[serde(default)]
    annotations: Tree,
}

/// The names and the capacity for a listing's tools.
pub struct ListingCapacity<'a> {
    /// The server's name, the prefix of its tools' names.
    pub prefix: &'a str,
    /// The names of the agent's other tools.
    pub used_names: HashSet<&'a str>,
    /// The number of tools that still fit.
    pub most: usize,
    /// Whether the server may require arguments to be repeated in headers.
    pub has_header_marks: bool,
}

impl ListingCapacity<'_> {
    pub fn read(self, listed: &[Box<RawValue>], sent: &ResolvedHeaders) -> ServerListing {
        let mut names: HashSet<String> = self
            .used_names
            .iter()
            .map(|&name| name.to_owned())
            .collect();
        let mut listing = ServerListing::default();
        let mut bytes = 0;
        for raw in listed {
            let read = json::decode::<ListedDefinition>(&sent.strip_json(raw.get().to_owned()))
                .map_err(|_| (String::new(), "its definition can't be read"))
                .and_then(|tool| self.define(tool));
            let outcome = read.and_then(|tool| {
                let size = tool.model_name.len() + tool.description.len() + tool.schema.get().len();
                let reason = if is_ours(&tool.model_name) || names.contains(&tool.model_name) {
                    "another tool already has its name"
                } else if listing.tools.len() >= self.most {
                    "the agent has reached its limit of tools"
                } else if bytes + size > MAX_SERVER_BYTES {
                    "the definitions of this server's tools are too long in total"
                } else {
                    bytes += size;
                    return Ok(tool);
                };
                Err((tool.name, reason))
            });
            match outcome {
                Ok(tool) => {
                    names.insert(tool.model_name.clone());
                    listing.tools.push(tool);
                }
                Err(_) if listing.left_out.len() >= MAX_LEFT_OUT => {}
                Err((name, reason)) => listing.left_out.push(OmittedTool {
                    name: clean(&name, MAX_OWN_NAME_BYTES),
                    reason: reason.to_owned(),
                }),
            }
        }
        // A server may list its tools in a different order each time.
        listing
            .tools
            .sort_by(|one, other| one.model_name.cmp(&other.model_name));
        listing
    }

    /// The tool as models get it, or its name and why it is omitted.
    fn define(&self, tool: ListedDefinition) -> Result<ServerDefinition, (String, &'static str)> {
        let ListedDefinition {
            name,
            title,
            description,
            input_schema: Tree(input_schema),
            annotations: Tree(annotations),
        } = tool;
        let definition = json::text(&json!([
            name,
            title,
            description,
            input_schema,
            annotations
        ]));
        let refuse = |reason| Err((name.clone(), reason));
        if name.is_empty() || name.len() > MAX_OWN_NAME_BYTES || name.chars().any(is_hidden) {
            return refuse("its name can't be used");
        }
        let headers = if self.has_header_marks {
            read_marks(&input_schema)
        } else {
            Some(BTreeMap::new())
        };
        let Some(headers) = headers else {
            return refuse("it names no valid headers for its arguments");
        };
        let Some(schema) = to_object_schema(input_schema) else {
            return refuse("its `inputSchema` does not describe an object");
        };
        // Rendered again, so that the same schema has the same bytes in every request.
        let schema = json::text(&schema);
        if schema.len() > MAX_SCHEMA_BYTES {
            return refuse("its `inputSchema` is too long");
        }
        let Ok(schema) = json::raw(schema) else {
            return refuse("its `inputSchema` can't be read");
        };
        let description = description.or(title).unwrap_or_default();
        Ok(ServerDefinition {
            model_name: show_name(self.prefix, &name),
            description: clean(&description, MAX_DESCRIPTION_BYTES),
            schema,
            headers,
            digest: hash(&definition, DIGEST_BYTES),
            name,
        })
    }
}

/// The arguments that a schema requires in headers. `None`: a keyword is invalid, or isn't
/// on an argument.
fn read_marks(schema: &Value) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    let mut names = HashSet::new();
    let properties = schema["properties"].as_object();
    for (argument, property) in properties.into_iter().flatten() {
        let Some(mark) = property.get(HEADER_MARK) else {
            continue;
        };
        let name = mark.as_str()?.to_ascii_lowercase();
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_named =
            (1..=MAX_HEADER_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_token);
        let is_plain = matches!(
            property["type"].as_str(),
            Some("string" | "integer" | "boolean")
        );
        if !is_named || !is_plain || !names.insert(name.clone()) {
            return None;
        }
        headers.insert(argument.clone(), format!("{HEADER_PREFIX}{name}"));
    }
    let marks = json::text(schema)
        .matches(&format!("\"{HEADER_MARK}\":"))
        .count();
    (marks == headers.len()).then_some(headers)
}

/// The name of a server's tool for models.
fn show_name(prefix: &str, name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let own = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect::<String>();
    let mut model_name = format!("{prefix}_{own}");
    if model_name.len() > MAX_NAME_BYTES {
        let hash = hash(name, 4);
        model_name.truncate(MAX_NAME_BYTES - 1 - hash.len());
        model_name = format!("{model_name}_{hash}");
    }
    model_name
}

fn hash(text: &str, bytes: usize) -> String {
    let mut digits = format!("{:x}", Sha256::digest(text));
    digits.truncate(2 * bytes);
    digits
}

/// The schema with `"type": "object"`. `None`: it is not an object's schema.
fn to_object_schema(schema: Value) -> Option<Value> {
    let mut fields = match schema {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return None,
    };
    let kind = fields.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return None;
    }
    let mut schema = Value::Object(fields);
    clean_texts(&mut schema);
    Some(schema)
}

/// Cleans every text of a schema, because models also read these.
fn clean_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean(text, MAX_SCHEMA_BYTES),
        Value::Array(items) => items.iter_mut().for_each(clean_texts),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.chars().any(is_hidden)) {
                let named = std::mem::take(fields).into_iter();
                fields.extend(named.map(|(name, value)| (clean(&name, MAX_SCHEMA_BYTES), value)));
            }
            fields.values_mut().for_each(clean_texts);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Untrusted text without hidden characters, truncated to `max_bytes`.
pub fn clean(text: &str, max_bytes: usize) -> String {
    let mut cleaned: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    if cleaned.len() > max_bytes {
        cleaned.truncate(cleaned.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8())));
        cleaned.push('…');
    }
    cleaned
}

/// Whether a model receives this character but a person who reads the text doesn't see it:
/// control characters, directional marks, blank letters, invisible tags, and variation
/// selectors without visible effect. U+FE0F is allowed: it turns a character into an emoji.
fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    is_control
        || matches!(
            c,
            '\u{AD}'
                | '\u{34F}'
                | '\u{61C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'
                | '\u{200E}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0E}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(listed: &Value, most: usize) -> ServerListing {
        let listed: Vec<Box<RawValue>> = serde_json::from_value(listed.clone()).unwrap();
        let capacity = ListingCapacity {
            prefix: "gh",
            used_names: HashSet::from(["gh_taken"]),
            most,
            has_header_marks: true,
        };
        capacity.read(&listed, &ResolvedHeaders::default())
    }

    fn names_of(listing: &ServerListing) -> Vec<&str> {
        listing
            .tools
            .iter()
            .map(|tool| tool.model_name.as_str())
            .collect()
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "A tool.", "inputSchema": {"type": "object"}})
    }

    #[test]
    fn names_are_valid_for_every_provider_and_unique() {
        let long = "x".repeat(100);
        let listed = json!([
            tool("z/ä.b"),
            tool("z_ä_b"),
            tool("taken"),
            tool("a"),
            tool("a"),
            tool(&long),
            tool(""),
            tool("a\u{202E}b"),
            tool("c\u{E0141}d"),
            tool(&"x".repeat(300)),
        ]);
        let listing = read(&listed, 10);
        let names = names_of(&listing);
        assert_eq!(names[0], "gh_a");
        assert_eq!(names[1].len(), 64);
        assert!(names[1].starts_with("gh_xxxx"), "{names:?}");
        assert_eq!(names[2], "gh_z___b");
        assert_eq!(names.len(), 3);
        let left: Vec<(&str, &str)> = listing
            .left_out
            .iter()
            .map(|left| (left.name.as_str(), left.reason.as_str()))
            .collect();
        let another = "another tool already has its name";
        assert_eq!(
            left[..3],
            [("z_ä_b", another), ("taken", another), ("a", another)]
        );
        assert_eq!(left[4], ("ab", "its name can't be used"));
        assert_eq!(left[5], ("cd", "its name can't be used"));
        assert_eq!(left.len(), 7);
    }

    #[test]
    fn a_definition_is_bounded_and_sanitized() {
        let listed = json!([
            {"name": "a", "title": "T\u{7}", "inputSchema": {"properties": {"q": {"description": "\u{E0041}x\u{0}\ny"}}}},
            {"name": "b", "description": "ä".repeat(4_000)},
            {"name": "b2", "description": "A\u{AD}\u{FE01}\u{E0152}\u{3164}\u{FFF9} \u{2764}\u{FE0F} e\u{301}\u{200D}"},
            {"name": "c", "inputSchema": {"type": "string"}},
            {"name": "d", "inputSchema": {"type": "object", "x": "y".repeat(70_000)}},
            {"name": "e", "inputSchema": [1]},
            {"name": "f", "inputSchema": {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "R"}}}},
            {"name": 1},
            7,
        ]);
        let listing = read(&listed, 10);
        assert_eq!(names_of(&listing), ["gh_a", "gh_b", "gh_b2", "gh_f"]);
        assert_eq!(
            listing.tools[2].description,
            "A \u{2764}\u{FE0F} e\u{301}\u{200D}"
        );
        assert_eq!(listing.tools[0].description, "T");
        assert_eq!(
            listing.tools[0].schema.get(),
            r#"{"properties":{"q":{"description":"x\ny"}},"type":"object"}"#
        );
        assert!(listing.tools[1].description.len() <= MAX_DESCRIPTION_BYTES);
        assert!(listing.tools[1].description.ends_with("ä…"));
        assert_eq!(listing.left_out.len(), 5);
    }

    #[test]
    fn an_argument_header_needs_a_unique_token_and_a_scalar() {
        let marked = |properties: Value| json!([{"name": "t", "inputSchema": {"type": "object", "properties": properties}}]);
        let mark = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
        for (properties, headers) in [
            (json!({"a": {"type": "string"}}), Some(json!({}))),
            (
                json!({"a": mark("string", "Region"), "b": mark("integer", "N"), "c": mark("boolean", "method")}),
                Some(json!({"a": "mcp-param-region", "b": "mcp-param-n", "c": "mcp-param-method"})),
            ),
            (json!({"a": mark("string", "")}), None),
            (json!({"a": mark("object", "A")}), None),
            (json!({"a": mark("array", "A")}), None),
            (json!({"a": mark("null", "A")}), None),
            (json!({"a": mark("number", "A")}), None),
            (json!({"a": {"x-mcp-header": "A"}}), None),
            (
                json!({"a": {"type": ["string"], "x-mcp-header": "A"}}),
                None,
            ),
            (json!({"a": {"type": "string", "x-mcp-header": 1}}), None),
            (
                json!({"a": mark("string", "Aa"), "b": mark("string", "aA")}),
                None,
            ),
            (json!({"a": mark("string", "A b")}), None),
            (json!({"a": mark("string", "A:b")}), None),
            (json!({"a": mark("string", "R\u{e9}gion")}), None),
            (json!({"a": mark("string", "A\tb")}), None),
            (json!({"a": mark("string", "A\r\nx: y")}), None),
            (json!({"a": mark("string", &"x".repeat(65))}), None),
            (
                json!({"a": {"type": "object", "properties": {"b": mark("string", "B")}}}),
                None,
            ),
        ] {
            let listing = read(&marked(properties.clone()), 10);
            let found = listing.tools.first().map(|tool| json!(tool.headers));
            assert_eq!(found, headers, "{properties}");
        }
    }

    #[test]
    fn tools_beyond_the_capacity_are_left_out_and_named() {
        let many: Vec<Value> = (0..300).map(|n| tool(&format!("t{n}"))).collect();
        let listing = read(&json!(many), 3);
        assert_eq!(listing.tools.len(), 3);
        assert_eq!(listing.left_out.len(), MAX_LEFT_OUT);
        let long: Vec<Value> = (0..6)
            .map(|n| json!({"name": format!("t{n}"), "inputSchema": {"x": "y".repeat(60_000)}}))
            .collect();
        let listing = read(&json!(long), 10);
        assert_eq!(listing.tools.len(), 4);
        let reason = &listing.left_out[0].reason;
        assert_eq!(
            reason,
            "the definitions of this server's tools are too long in total"
        );
    }

    #[test]
    fn the_digest_changes_with_the_definition_but_not_its_key_order() {
        let digest = |tool: Value| read(&json!([tool]), 1).tools[0].digest.clone();
        let plain = digest(
            json!({"name": "a", "description": "x", "inputSchema": {"type": "object", "a": 1}}),
        );
        assert_eq!(
            plain,
            digest(
                json!({"inputSchema": {"a": 1, "type": "object"}, "name": "a", "description": "x"})
            )
        );
        for changed in [
            json!({"name": "a", "description": "y", "inputSchema": {"type": "object", "a": 1}}),
            json!({"name": "a", "description": "x", "inputSchema": {"type": "object", "a": 2}}),
            json!({"name": "a", "description": "x", "inputSchema": {"type": "object", "a": 1}, "annotations": {"destructiveHint": true}}),
            json!({"name": "a", "description": "x\u{7}", "inputSchema": {"type": "object", "a": 1}}),
        ] {
            assert_ne!(digest(changed.clone()), plain, "{changed}");
        }
    }
}
