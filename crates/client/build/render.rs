//! The source of the operations: a struct for what each takes, and the shapes that they share.

use crate::document::{Call, Document, Schema};
use crate::names::{pascal, quoted};
use crate::shapes::{Field, FieldWords, SENT_MESSAGE, Shapes};

/// Operations that may run twice, where the agent knows a repetition by an id of the caller's.
const REPEATABLE: [(&str, &str); 5] = [
    (
        "appendEvents",
        "self.events.iter().all(|event| event.id.is_some())",
    ),
    ("appendMessage", "self.message.id.is_some()"),
    (
        "appendMessages",
        "self.messages.iter().all(|message| message.id.is_some())",
    ),
    ("runTurn", "self.message.id.is_some()"),
    ("addUsage", "self.id.is_some()"),
];

/// In this operation, `null` in any field means something.
const CONFIGURE: &str = "configureAgent";

/// The most arguments of a function: clippy's own bound. A value of more required fields is read
/// from an answer and sent back: nobody writes it by hand.
const MOST_ARGUMENTS: usize = 7;

/// Every operation, every shape, and the codes of errors.
pub fn operations(document: &Document) -> Result<String, String> {
    let shapes = Shapes::of(document)?;
    let named = shapes.named()?;
    let mut parts = Vec::new();
    for call in document.operations() {
        let name = pascal(&call.operation_id);
        if named.iter().any(|(shape, _)| *shape == name) {
            return Err(format!(
                "`{name}` is a shape and an operation: rename the shape"
            ));
        }
        parts.push(operation(&shapes, &name, call)?);
    }
    for (name, schema) in named {
        parts.push(shape(&shapes, name, schema)?);
    }
    parts.push(codes(document)?);
    Ok(parts.join("\n"))
}

/// `each! { … }` with the name of every operation, for a test.
pub fn each(document: &Document) -> String {
    let names = document.operations().map(|call| pascal(&call.operation_id));
    format!("each! {{ {} }}\n", names.collect::<Vec<_>>().join(" "))
}

fn operation(shapes: &Shapes<'_>, name: &str, call: &Call) -> Result<String, String> {
    let id = &call.operation_id;
    let input = shapes.resolve(call.input()?)?;
    let (fields, enums) = shapes.fields(name, input, id == CONFIGURE)?;
    let output = shapes
        .type_of(call.output()?, &format!("{name}Output"))?
        .whole();
    let about: Vec<&str> = [&call.summary, &call.description]
        .into_iter()
        .filter_map(Option::as_deref)
        .collect();
    let repeatable = REPEATABLE.iter().find(|(repeatable, _)| repeatable == id);
    let repeatable = repeatable.map_or_else(String::new, |(_, rule)| {
        format!("\n    fn is_repeatable(&self) -> bool {{\n        {rule}\n    }}\n")
    });
    Ok([
        docs(&about.join("\n\n"), ""),
        structure(name, &fields, false),
        making(name, &fields, false),
        format!(
            "\nimpl Operation for {name} {{
    type Output = {output};
    const NAME: &'static str = {};
    const READS: bool = {};
{repeatable}}}
",
            quoted(id),
            call.reads()
        ),
        field_enums(enums),
    ]
    .concat())
}

fn shape(shapes: &Shapes<'_>, name: &str, schema: &Schema) -> Result<String, String> {
    let about = schema.rules.description.clone();
    let about = about.or_else(|| shapes.find_use(name)).unwrap_or_default();
    if schema.is_words() {
        return Ok(words(name, &about, schema));
    }
    if !schema.rules.any_of.is_empty() {
        return choice(shapes, name, &about, schema);
    }
    let (fields, enums) = shapes.fields(name, schema, false)?;
    let more = schema.rules.additional_properties.as_ref();
    let is_open = more.is_some_and(|more| more.is_allowed == Some(true));
    let making = if shapes.is_sent(name) {
        making(name, &fields, is_open)
    } else {
        String::new()
    };
    Ok([
        docs(&about, ""),
        structure(name, &fields, is_open),
        making,
        field_enums(enums),
    ]
    .concat())
}

fn structure(name: &str, fields: &[Field], is_open: bool) -> String {
    let default = if fields.iter().any(|field| field.is_required) {
        ""
    } else {
        "Default, "
    };
    let mut lines: String = fields.iter().map(declaration).collect();
    if is_open {
        lines.push_str("    /// The fields that have no name here.\n    #[serde(flatten)]\n    pub more: Object,\n");
    }
    format!(
        "#[derive(Clone, Debug, {default}Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = \"camelCase\")]
pub struct {name} {{
{lines}}}
"
    )
}

fn declaration(field: &Field) -> String {
    const OPTIONAL: &str = "    #[serde(skip_serializing_if = \"Option::is_none\")]\n";
    const NULLABLE: &str = "    #[serde(default, deserialize_with = \"crate::operation::nullable\", skip_serializing_if = \"Option::is_none\")]\n";
    let (attribute, of) = match (field.is_required, field.is_nullable) {
        (true, _) => ("", field.of.whole()),
        (false, true) => (NULLABLE, format!("Option<Option<{}>>", field.of.bare)),
        (false, false) => (OPTIONAL, format!("Option<{}>", field.of.bare)),
    };
    let about = docs(&field.docs, "    ");
    format!("{about}{attribute}    pub {}: {of},\n", field.name)
}

/// How a caller makes a value: of what it must have, and with a method for each other field.
fn making(name: &str, fields: &[Field], is_open: bool) -> String {
    let (required, optional): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| field.is_required);
    let mut made = String::new();
    if required.len() <= MOST_ARGUMENTS {
        let function = constructor(&required, &optional, is_open);
        made.push_str(&format!(
            "\nimpl {name} {{\n    #[must_use]\n{function}}}\n"
        ));
    }
    if !optional.is_empty() {
        let lines = optional.iter().map(|field| {
            let null = if field.is_nullable { "or null " } else { "" };
            format!("    {null}{}: {};\n", field.name, argument(&field.of.bare))
        });
        let lines: String = lines.collect();
        made.push_str(&format!("\nsetters! {{\n    {name}:\n{lines}}}\n"));
    }
    made
}

fn constructor(required: &[&Field], optional: &[&Field], is_open: bool) -> String {
    if required.is_empty() {
        return "    pub fn new() -> Self {\n        Self::default()\n    }\n".to_owned();
    }
    let is_into = |field: &Field| !field.of.accepts_null && is_into(&field.of.bare);
    let arguments = required.iter().map(|field| {
        if is_into(field) {
            format!("{}: {}", field.name, argument(&field.of.bare))
        } else {
            format!("{}: {}", field.name, field.of.whole())
        }
    });
    let given = required.iter().map(|field| {
        if is_into(field) {
            format!("            {0}: {0}.into(),\n", field.name)
        } else {
            format!("            {},\n", field.name)
        }
    });
    let left_out = optional
        .iter()
        .map(|field| format!("            {}: None,\n", field.name));
    let more = is_open.then(|| "            more: Object::new(),\n".to_owned());
    format!(
        "    pub fn new({}) -> Self {{\n        Self {{\n{}        }}\n    }}\n",
        arguments.collect::<Vec<_>>().join(", "),
        given.chain(left_out).chain(more).collect::<String>()
    )
}

fn is_into(of: &str) -> bool {
    of == "String" || of == SENT_MESSAGE
}

fn argument(of: &str) -> String {
    if is_into(of) {
        format!("impl Into<{of}>")
    } else {
        of.to_owned()
    }
}

/// One of several shapes, distinguished by their fields.
fn choice(shapes: &Shapes<'_>, name: &str, about: &str, schema: &Schema) -> Result<String, String> {
    let mut variants = String::new();
    for one in &schema.rules.any_of {
        let of = shapes.type_of(one, name)?.whole();
        let variant = if one.name().is_some() { &of } else { "Text" };
        variants.push_str(&format!("    {variant}({of}),\n"));
    }
    let about = docs(about, "");
    Ok(format!(
        "{about}#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum {name} {{
{variants}}}
"
    ))
}

fn field_enums(enums: Vec<FieldWords<'_>>) -> String {
    let enums = enums.into_iter();
    let enums = enums.map(|of| {
        format!(
            "\n{}",
            words(&of.name, "The words of this field.", of.schema)
        )
    });
    enums.collect()
}

/// An enum of words, which keeps a word that it does not know.
fn words(name: &str, about: &str, schema: &Schema) -> String {
    let variants = schema
        .described_words()
        .into_iter()
        .map(|(word, description)| {
            let description = docs(description.unwrap_or_default(), "        ");
            format!(
                "{description}        {} = {},\n",
                pascal(word),
                quoted(word)
            )
        });
    let (about, variants) = (docs(about, "    "), variants.collect::<String>());
    format!("words! {{\n{about}    pub enum {name} {{\n{variants}    }}\n}}\n")
}

fn codes(document: &Document) -> Result<String, String> {
    let error = document.schemas().get("Error");
    let code = error.and_then(|error| error.field("error")?.field("code"));
    let code = code.ok_or("the API's document has no codes of errors")?;
    Ok(words(
        "Code",
        "Why an agent refused. Codes are stable.",
        code,
    ))
}

/// A doc comment, or nothing.
fn docs(text: &str, indent: &str) -> String {
    let text = without_links(text);
    let lines = text.lines().map(|line| match line {
        "" => format!("{indent}///\n"),
        line => format!("{indent}/// {line}\n"),
    });
    lines.collect()
}

/// The text without links to the agent's own code, which lead nowhere here.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(&match part.split_once("`]") {
            Some((name, rest)) if !rest.starts_with('(') => format!("`{name}`{rest}"),
            _ => format!("[`{part}"),
        });
    }
    plain
}
