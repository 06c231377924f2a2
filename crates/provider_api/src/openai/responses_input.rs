//! Parses the input items of a request: messages, calls and their results.

use serde_json::Value;

use super::referred_items::StoredItems;
use super::request::{PROVIDER_FORMAT_NOTE, arguments_of};
use crate::numbers::set;
use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, RequestFields, check_given, check_not_empty, file_part,
    id_in, stored_message, text_in, text_part, tree, values,
};
use base::action::Role;
use base::error::{Error, Result};
use base::json::{self, RawValue, json};

/// `system` collects the instructions among the messages. `stored` contains the items that
/// the request may reference by id.
pub fn parse_input(
    input: &RawValue,
    system: &mut Vec<String>,
    stored: &StoredItems<'_>,
) -> Result<Vec<Item>> {
    if input.get().starts_with('"') {
        let content = ParsedContent::of_text(text_in("input", input)?);
        let items = vec![content.into_user()?];
        check_not_empty("input", &items)?;
        return Ok(items);
    }
    let mut items: Vec<Item> = Vec::new();
    let mut newest_field = String::new();
    for (index, item) in values::<MAX_ITEMS>("input", input)?.into_iter().enumerate() {
        let field = format!("input[{index}]");
        let mut item = RequestFields::of(&field, item.get())?;
        let referred = match item.text("type").as_str() {
            "item_reference" => Some(stored.get(&field, &item.text("id"))?),
            _ => None,
        };
        if let Some(referred) = &referred {
            item = RequestFields::of(&field, referred.get())?;
        }
        match item.text("type").as_str() {
            "" | "message" => {
                parse_message(&field, &item, system, &mut items)?;
                if item.text("role") == Role::User.name() {
                    newest_field = format!("{field}.content");
                }
            }
            "function_call" => {
                let call = ItemCall {
                    id: id_in(&format!("{field}.call_id"), item.find("call_id"))?,
                    name: id_in(&format!("{field}.name"), item.find("name"))?,
                    arguments: arguments_of(&item.text("arguments"))?,
                };
                // A text and the calls after it form one message of the assistant.
                match items.last_mut() {
                    Some(Item::Assistant { calls, .. }) => calls.push(call),
                    _ => items.push(Item::Assistant {
                        text: String::new(),
                        calls: vec![call],
                        items: None,
                    }),
                }
            }
            "function_call_output" => items.push(Item::Result {
                call_id: id_in(&format!("{field}.call_id"), item.find("call_id"))?,
                text: output_of(&field, &item)?,
                is_error: false,
                given: None,
            }),
            // Reasoning items are ignored: the agent's own reasoning is in the log.
            "reasoning" => {}
            kind => {
                return Err(Error::invalid(
                    &field,
                    format!("`{field}` has the type `{kind}`, which is not supported."),
                ));
            }
        }
    }
    check_not_empty(&newest_field, &items)?;
    Ok(items)
}

fn output_of(field: &str, item: &RequestFields<'_>) -> Result<String> {
    match item.find("output") {
        Some(output) if output.get().starts_with('[') => {
            let field = format!("{field}.output");
            let parts = values::<MAX_PARTS>(&field, output)?.into_iter().enumerate();
            let texts = parts.map(|(index, part)| {
                let field = format!("{field}[{index}]");
                let part = RequestFields::of(&field, part.get())?;
                match part.text("type").as_str() {
                    "input_text" | "output_text" | "text" => Ok(part.text("text")),
                    kind => Err(Error::invalid(
                        &field,
                        format!("`{field}` has the type `{kind}`: a result can only be text."),
                    )),
                }
            });
            Ok(texts.collect::<Result<Vec<String>>>()?.join("\n"))
        }
        Some(output) => text_in(&format!("{field}.output"), output),
        None => Ok(String::new()),
    }
}

fn parse_message(
    field: &str,
    item: &RequestFields<'_>,
    system: &mut Vec<String>,
    items: &mut Vec<Item>,
) -> Result<()> {
    let content = item.find("content").ok_or_else(|| {
        let field = format!("{field}.content");
        Error::invalid(&field, format!("`{field}` is missing."))
    })?;
    let field_of_content = format!("{field}.content");
    let content = if content.get().starts_with('"') {
        ParsedContent::of_text(text_in(&field_of_content, content)?)
    } else {
        parse_content(&field_of_content, content)?
    };
    match item.text("role").as_str() {
        "system" | "developer" => system.push(content.text()),
        "user" => items.push(content.into_user()?),
        "assistant" => match items.last_mut() {
            // Several texts of one answer.
            Some(Item::Assistant {
                text: so_far,
                calls,
                ..
            }) if calls.is_empty() => {
                so_far.push('\n');
                so_far.push_str(&content.text());
            }
            _ => items.push(Item::Assistant {
                text: content.text(),
                calls: Vec::new(),
                items: None,
            }),
        },
        _ => {
            let field = format!("{field}.role");
            let message =
                format!("`{field}` must be `system`, `developer`, `user` or `assistant`.");
            return Err(Error::invalid(&field, message));
        }
    }
    Ok(())
}

/// The content of a message: its parts in the AI SDK's format, and in the Chat Completions
/// format if the former don't contain everything.
#[derive(Default)]
struct ParsedContent {
    texts: Vec<String>,
    parts: Vec<Value>,
    others: Vec<String>,
    in_chat: Vec<Value>,
    needs_original: bool,
    /// The field of a part that only its provider can read.
    lost: Option<String>,
}

impl ParsedContent {
    fn of_text(text: String) -> Self {
        Self {
            parts: vec![text_part(&text)],
            texts: vec![text],
            ..Self::default()
        }
    }

    fn text(&self) -> String {
        self.texts.join("\n")
    }

    fn into_user(self) -> Result<Item> {
        let text = self.text();
        let given = if self.needs_original {
            let message = json!({"role": Role::User.name(), "content": Value::Array(self.in_chat)});
            stored_message(&json::text(&message))
        } else {
            None
        };
        check_given(self.lost, given.as_ref())?;
        Ok(Item::User {
            text,
            parts: self.parts,
            others: self.others,
            given,
        })
    }

    fn add(&mut self, field: String, part: &RequestFields<'_>) -> Result<()> {
        let kind = part.text("type");
        match kind.as_str() {
            "input_text" | "output_text" | "text" => self.add_text(part.text("text")),
            "refusal" => self.add_text(part.text("refusal")),
            "input_image" if part.find("image_url").is_some() => {
                let url = part.text("image_url");
                let mut image = json!({"url": url.as_str()});
                if let Some(detail) = part.find_text("detail").filter(|it| it != "auto") {
                    self.needs_original = true;
                    set(&mut image, "detail", detail.into());
                }
                let in_chat = json!({"type": "image_url", "image_url": image});
                self.add_file(part, file_part("image/*", &url, None), in_chat);
            }
            "input_file" if part.text("file_data").starts_with("data:application/pdf") => {
                let (name, data) = (part.find_text("filename"), part.text("file_data"));
                let in_chat = in_chat_file(part)?;
                let file = file_part("application/pdf", &data, name.as_deref());
                self.add_file(part, file, in_chat);
            }
            "input_file" if part.find("file_url").is_none() => {
                let in_chat = in_chat_file(part)?;
                self.add_lost(field, part, in_chat);
            }
            "input_audio" => {
                let audio = part.find("input_audio").map(tree).transpose()?;
                self.add_lost(field, part, json!({"type": kind, "input_audio": audio}));
            }
            _ => {
                return Err(Error::invalid(
                    &field,
                    format!(
                        "`{field}` has the type `{kind}`, which is not supported in a message."
                    ),
                ));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: String) {
        self.parts.push(text_part(&text));
        self.in_chat
            .push(json!({"type": "text", "text": text.as_str()}));
        self.texts.push(text);
    }

    fn add_file(&mut self, part: &RequestFields<'_>, file: Value, in_chat: Value) {
        self.others.push(part.digest());
        self.parts.push(file);
        self.in_chat.push(in_chat);
    }

    fn add_lost(&mut self, field: String, part: &RequestFields<'_>, in_chat: Value) {
        self.add_file(part, text_part(PROVIDER_FORMAT_NOTE), in_chat);
        self.needs_original = true;
        self.lost = Some(field);
    }
}

/// A file in the Chat Completions format.
fn in_chat_file(part: &RequestFields<'_>) -> Result<Value> {
    let mut file = serde_json::Map::new();
    for name in ["filename", "file_data", "file_id"] {
        if let Some(value) = part.find(name) {
            file.insert(name.to_owned(), tree(value)?);
        }
    }
    Ok(json!({"type": "file", "file": Value::Object(file)}))
}

fn parse_content(field: &str, content: &RawValue) -> Result<ParsedContent> {
    let mut parsed = ParsedContent::default();
    for (index, part) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let part = RequestFields::of(&field, part.get())?;
        parsed.add(field, &part)?;
    }
    Ok(parsed)
}
