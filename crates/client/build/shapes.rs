//! Which schemas of the document become types, and what their types are.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Document, Schema};
use crate::names::{pascal, rust_name};

/// A message that is sent: the crate writes this type by hand.
pub const SENT_MESSAGE: &str = "NewMessage";
const SENT_MESSAGES: [&str; 2] = ["SentMessage", "SentUserMessage"];

/// The crate has types of its own for errors, and of this shape only the codes. A message or a tool
/// that is sent is JSON.
const LEFT_OUT: [&str; 4] = ["ClientTool", "Error", "SentMessage", "SentUserMessage"];

/// The call, other than the operations, whose answer the crate reads.
const IMPORT: &str = "importSession";

pub struct Shapes<'a> {
    schemas: &'a BTreeMap<String, Schema>,
    used: BTreeSet<&'a str>,
    /// The shapes that callers send.
    sent: BTreeSet<&'a str>,
    /// The operations that answer with a shape.
    answers: BTreeMap<&'a str, Vec<String>>,
    /// The shape or the operation that a shape is a part of.
    owners: BTreeMap<&'a str, String>,
}

/// A type of Rust, and whether it is optional.
pub struct Type {
    pub bare: String,
    pub accepts_null: bool,
}

impl Type {
    pub fn whole(&self) -> String {
        if self.accepts_null {
            format!("Option<{}>", self.bare)
        } else {
            self.bare.clone()
        }
    }
}

impl From<&str> for Type {
    fn from(bare: &str) -> Self {
        Self {
            bare: bare.to_owned(),
            accepts_null: false,
        }
    }
}

/// A field of a struct.
pub struct Field {
    pub name: String,
    pub docs: String,
    pub of: Type,
    pub is_required: bool,
    /// `null` means something else than a field that is left out.
    pub is_nullable: bool,
}

/// An enum of words that has no name in the document: it has that of its field.
pub struct FieldWords<'a> {
    pub name: String,
    pub schema: &'a Schema,
}

impl<'a> Shapes<'a> {
    pub fn of(document: &'a Document) -> Result<Self, String> {
        let mut shapes = Self {
            schemas: document.schemas(),
            used: BTreeSet::new(),
            sent: BTreeSet::new(),
            answers: BTreeMap::new(),
            owners: BTreeMap::new(),
        };
        for operation in document.operations() {
            let input = shapes.resolve(operation.input()?)?;
            let (used, sent) = (shapes.below(input)?, shapes.below(operation.output()?)?);
            shapes.sent.extend(&used);
            shapes.used.extend(used.union(&sent));
            for name in operation.output()?.names() {
                let answers = shapes.answers.entry(name).or_default();
                answers.push(format!("`{}`", operation.operation_id));
            }
        }
        if let Some(import) = document.find_call(IMPORT) {
            shapes.used.extend(shapes.below(import.output()?)?);
        }
        for (whole, schema) in shapes.schemas {
            for name in schema.names() {
                let part_of = shapes.owners.entry(name);
                part_of.or_insert_with(|| whole.clone());
            }
        }
        for operation in document.operations() {
            for name in operation.input()?.names() {
                let part_of = shapes.owners.entry(name);
                part_of.or_insert_with(|| pascal(&operation.operation_id));
            }
        }
        Ok(shapes)
    }

    /// The shapes with a type of their own, by name.
    pub fn named(&self) -> Result<Vec<(&'a str, &'a Schema)>, String> {
        let named = self.used.iter();
        named.map(|name| Ok((*name, self.get(name)?))).collect()
    }

    pub fn is_sent(&self, name: &str) -> bool {
        self.sent.contains(name)
    }

    /// The documentation of a shape that has none.
    pub fn find_use(&self, name: &str) -> Option<String> {
        match self.answers.get(name) {
            Some(operations) => Some(format!("What {} answers.", operations.join(", "))),
            None => Some(format!("A part of `{}`.", self.owners.get(name)?)),
        }
    }

    pub fn resolve(&self, schema: &'a Schema) -> Result<&'a Schema, String> {
        schema.name().map_or(Ok(schema), |name| self.get(name))
    }

    /// The fields of a struct, the required ones first, and the enums that are written in them.
    pub fn fields(
        &self,
        owner: &str,
        schema: &'a Schema,
        keeps_null: bool,
    ) -> Result<(Vec<Field>, Vec<FieldWords<'a>>), String> {
        let rules = &schema.rules;
        let properties = rules.properties.iter().flatten();
        let optional = properties.filter(|(name, _)| !rules.required.contains(*name));
        let required = rules.required.iter().map(|name| {
            let missing = || format!("`{owner}` requires `{name}`, and doesn't describe it");
            let property = schema.field(name).map(|schema| (name, schema));
            property.ok_or_else(missing)
        });
        let mut fields = Vec::new();
        let mut enums = Vec::new();
        for field in required.chain(optional.map(Ok)) {
            let (json, schema) = field?;
            let is_required = rules.required.contains(json);
            let is_nullable = !is_required && is_nullable(schema, keeps_null);
            let type_name = format!("{owner}{}", pascal(json));
            fields.push(Field {
                name: rust_name(json).ok_or_else(|| {
                    format!("`{owner}.{json}` has no name in Rust that leads back to it")
                })?,
                docs: documentation(schema, is_nullable),
                of: self.type_of(schema, &type_name)?,
                is_required,
                is_nullable,
            });
            if schema.is_words() {
                enums.push(FieldWords {
                    name: type_name,
                    schema,
                });
            }
        }
        Ok((fields, enums))
    }

    /// The type of a schema. `type_name` names it in an error, and an enum of words.
    pub fn type_of(&self, schema: &Schema, type_name: &str) -> Result<Type, String> {
        if is_sent_message(schema) {
            return Ok(SENT_MESSAGE.into());
        }
        if let Some(name) = schema.name() {
            let shape = self.get(name)?;
            return if is_shape(name, shape) {
                Ok(name.into())
            } else {
                self.type_of(shape, name)
            };
        }
        let rules = &schema.rules;
        if !rules.any_of.is_empty() {
            let nulls = rules.any_of.iter().filter(|one| one.is_null()).count();
            let mut others = rules.any_of.iter().filter(|one| !one.is_null());
            let (Some(one), None, 1) = (others.next(), others.next(), nulls) else {
                return Err(format!("`{type_name}` is one of several things"));
            };
            let bare = self.type_of(one, type_name)?.bare;
            return Ok(Type {
                bare,
                accepts_null: true,
            });
        }
        if schema.is_words() {
            return Ok(type_name.into());
        }
        let mut types = rules.types.iter().filter(|of| *of != "null");
        let bare = match (types.next(), types.next()) {
            (None, _) => return Ok("Value".into()),
            (Some(of), None) => self.plain(of, schema, type_name)?,
            (Some(_), Some(_)) => return Err(format!("`{type_name}` is one of several types")),
        };
        Ok(Type {
            bare,
            accepts_null: schema.accepts_null(),
        })
    }

    fn plain(&self, of: &str, schema: &Schema, type_name: &str) -> Result<String, String> {
        let rules = &schema.rules;
        Ok(match of {
            "string" => "String".to_owned(),
            "boolean" => "bool".to_owned(),
            "number" => "f64".to_owned(),
            "integer" => "i64".to_owned(),
            "array" => {
                let item = match &rules.items {
                    Some(item) => self.type_of(item, type_name)?.whole(),
                    None => "Value".to_owned(),
                };
                match (rules.min_items, rules.max_items) {
                    (Some(2), Some(2)) => format!("[{item}; 2]"),
                    _ => format!("Vec<{item}>"),
                }
            }
            "object" if rules.properties.is_none() => match &rules.additional_properties {
                Some(values) if values.is_allowed.is_none() => {
                    let value = self.type_of(values, type_name)?.whole();
                    format!("BTreeMap<String, {value}>")
                }
                _ => "Object".to_owned(),
            },
            _ => return Err(format!("`{type_name}` is of the type {of}, without a name")),
        })
    }

    /// The shapes that a schema names, at any depth.
    fn below(&self, schema: &'a Schema) -> Result<BTreeSet<&'a str>, String> {
        let mut seen = BTreeSet::new();
        let mut open = schema.names();
        while let Some(name) = open.pop() {
            if seen.insert(name) {
                open.extend(self.get(name)?.names());
            }
        }
        seen.retain(|name| self.schemas.get(*name).is_some_and(|of| is_shape(name, of)));
        Ok(seen)
    }

    fn get(&self, name: &str) -> Result<&'a Schema, String> {
        let found = self.schemas.get(name);
        found.ok_or_else(|| format!("the API's document has no shape `{name}`"))
    }
}

/// Whether a schema is a type of its own. Any other, such as `Id`, is what it is made of.
fn is_shape(name: &str, schema: &Schema) -> bool {
    let is_type = schema.rules.properties.is_some() || !schema.rules.any_of.is_empty();
    !LEFT_OUT.contains(&name) && (is_type || schema.is_words())
}

fn is_sent_message(schema: &Schema) -> bool {
    let mut named = [schema].into_iter().chain(&schema.rules.all_of);
    named.any(|one| one.name().is_some_and(|name| SENT_MESSAGES.contains(&name)))
}

/// Whether `null` means something else than a field that is left out.
fn is_nullable(field: &Schema, keeps_null: bool) -> bool {
    let has_null_default = field.rules.default.as_ref().is_some_and(|of| of.is_null());
    field.accepts_null() && (keeps_null || (has_null_default && !field.is_array()))
}

fn documentation(field: &Schema, is_nullable: bool) -> String {
    let mut lines: Vec<String> = field.rules.description.iter().cloned().collect();
    if let Some(default) = field
        .rules
        .default
        .as_ref()
        .filter(|default| !default.is_null())
    {
        lines.push(format!("Default: `{default}`."));
    }
    if is_nullable {
        lines.push("`Some(None)` sends `null`.".to_owned());
    }
    lines.join("\n")
}
