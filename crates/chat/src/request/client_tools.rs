//! Tools that a client provides and runs itself: `tools` of an HTTP body, `clientTools` of
//! a socket's. The model gets them in addition to the agent's own.

use serde::Deserialize;

use base::error::{Error, Result};
use base::json::{self, JsonObject, RawValue};
use models::ToolDefinition;

/// The most client tools: each model call sends all of them.
pub const MAX_CLIENT_TOOLS: usize = 128;

/// The longest tool name that providers accept.
const MAX_NAME_CHARS: usize = 64;

/// The most bytes of all descriptions and schemas together: 128 tools of 2 KiB.
const MAX_TOOLS_BYTES: usize = 256 << 10;

/// The schema of a tool without one: it accepts any object.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientToolInput {
    name: Option<String>,
    description: Option<String>,
    parameters: Option<JsonObject>,
    /// The AI SDK calls this `parameters`.
    input_schema: Option<JsonObject>,
}

/// The tools of `field`: an array, or an object with one tool per name. If two tools have
/// the same name, the later one wins, as in the stock server.
pub fn parse_client_tools(field: &str, tools: &RawValue) -> Result<Vec<ToolDefinition>> {
    let must = |what: &str| Error::invalid(field, format!("`{field}` must be {what}."));
    let bytes = tools.get().len();
    if bytes > MAX_TOOLS_BYTES {
        return Err(
            Error::payload_too_large(&format!("`{field}`"), MAX_TOOLS_BYTES, bytes)
                .with_field(field),
        );
    }
    let given = match tools.get().as_bytes().first() {
        Some(b'[') => json::decode::<Vec<&RawValue>>(tools.get())
            .map(|list| list.into_iter().map(|tool| (None, tool)).collect()),
        Some(b'{') => json::decode::<NamedTools<'_>>(tools.get()).map(|NamedTools(map)| {
            map.into_iter()
                .map(|(name, tool)| (Some(name), tool))
                .collect()
        }),
        Some(b'n') => return Ok(Vec::new()),
        _ => return Err(must("an array of tools")),
    };
    let given: Vec<(Option<String>, &RawValue)> = given.map_err(|_| must("an array of tools"))?;
    if given.len() > MAX_CLIENT_TOOLS {
        return Err(must(&format!("at most {MAX_CLIENT_TOOLS} tools")));
    }
    let mut parsed: Vec<ToolDefinition> = Vec::new();
    for (index, (name, tool)) in given.into_iter().enumerate() {
        let tool = parse_tool(&format!("{field}[{index}]"), name, tool)?;
        parsed.retain(|earlier| earlier.name != tool.name);
        parsed.push(tool);
    }
    Ok(parsed)
}

fn parse_tool(field: &str, name: Option<String>, tool: &RawValue) -> Result<ToolDefinition> {
    let given: ClientToolInput = json::decode(tool.get()).map_err(|_| {
        Error::invalid(
            field,
            format!("`{field}` must be an object with `name`, `description` and `parameters` (a JSON Schema)."),
        )
    })?;
    let name = name.or(given.name).unwrap_or_default();
    check_name(&format!("{field}.name"), &name)?;
    let schema = given.parameters.or(given.input_schema);
    let parameters = match schema {
        Some(schema) => schema.into_raw(),
        None => json::raw(ANY_OBJECT.to_owned())?,
    };
    Ok(ToolDefinition {
        name,
        description: given.description.unwrap_or_default(),
        parameters,
    })
}

/// Refuses a tool name that some providers don't accept.
pub fn check_name(field: &str, name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("`{field}` must have 1 to {MAX_NAME_CHARS} letters, digits, `_` or `-`."),
    ))
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// An object's fields in the order in which they were sent.
struct NamedTools<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for NamedTools<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        struct Reader;
        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = NamedTools<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(NamedTools(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tools: &str) -> Result<Vec<ToolDefinition>> {
        parse_client_tools("tools", &json::raw(tools.to_owned()).unwrap())
    }

    fn signatures(tools: &str) -> Vec<String> {
        let describe = |tool: ToolDefinition| {
            format!(
                "{} ({}) {}",
                tool.name,
                tool.description,
                tool.parameters.get()
            )
        };
        parse(tools).unwrap().into_iter().map(describe).collect()
    }

    #[test]
    fn an_array_and_an_object_of_tools_are_equivalent() {
        let expected = [r#"place (Where?) {"type":"object","properties":{}}"#];
        assert_eq!(
            signatures(
                r#"[{"name":"place","description":"Where?","parameters":{"type":"object","properties":{}}}]"#
            ),
            expected
        );
        assert_eq!(
            signatures(
                r#"{"place":{"description":"Where?","inputSchema":{"type":"object","properties":{}}}}"#
            ),
            expected
        );
    }

    #[test]
    fn schemas_and_tools_are_optional() {
        assert_eq!(
            signatures(r#"[{"name":"now"}]"#),
            [r#"now () {"type":"object"}"#]
        );
        assert!(signatures("[]").is_empty() && signatures("null").is_empty());
    }

    #[test]
    fn the_later_of_two_tools_with_one_name_applies() {
        assert_eq!(
            signatures(
                r#"[{"name":"a","description":"1"},{"name":"b"},{"name":"a","description":"2"}]"#
            ),
            [r#"b () {"type":"object"}"#, r#"a (2) {"type":"object"}"#]
        );
    }

    #[test]
    fn an_error_names_its_field() {
        let long = format!(r#"[{{"name":"{}"}}]"#, "n".repeat(65));
        for (tools, field) in [
            ("5", "tools"),
            (r#""a""#, "tools"),
            ("[5]", "tools[0]"),
            (r#"[{"name":"a"},{}]"#, "tools[1].name"),
            (r#"[{"name":"a b"}]"#, "tools[0].name"),
            (r#"[{"name":"a","parameters":"{}"}]"#, "tools[0]"),
            (long.as_str(), "tools[0].name"),
        ] {
            assert_eq!(
                parse(tools).unwrap_err().details()["field"],
                field,
                "{tools}"
            );
        }
    }

    #[test]
    fn tools_are_limited_in_number_and_size() {
        let many = |count: usize| {
            let tools: Vec<String> = (0..count)
                .map(|n| format!(r#"{{"name":"t{n}"}}"#))
                .collect();
            format!("[{}]", tools.join(","))
        };
        assert_eq!(
            parse(&many(MAX_CLIENT_TOOLS)).unwrap().len(),
            MAX_CLIENT_TOOLS
        );
        assert_eq!(
            parse(&many(MAX_CLIENT_TOOLS + 1)).unwrap_err().details()["field"],
            "tools"
        );
        let wide = format!(
            r#"[{{"name":"a","description":"{}"}}]"#,
            "d".repeat(MAX_TOOLS_BYTES)
        );
        assert_eq!(parse(&wide).unwrap_err().code.name(), "payload_too_large");
    }
}
