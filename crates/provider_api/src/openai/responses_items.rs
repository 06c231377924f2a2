//! Parses the input of a request for a model that uses Responses. Messages, function calls
//! and their results are written to the log. Every other item is stored as the caller sent
//! it: with the user's messages if it answers a call, with the assistant's message
//! otherwise.

use std::collections::HashSet;

use serde_json::Value;

use super::referred_items::StoredItems;
use super::request::{PROVIDER_FORMAT_NOTE, arguments_of};
use super::responses_tools::APPROVAL_PREFIX;
use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, RequestFields, check_given, check_not_empty, file_part,
    id_in, stored_item, stored_items, text_in, text_part, values,
};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::RawValue;

/// `system` collects the instructions among the messages. `stored` contains the items that
/// the request may reference by id.
pub fn parse_items(
    input: &RawValue,
    system: &mut Vec<String>,
    stored: &StoredItems<'_>,
) -> Result<Vec<Item>> {
    let mut read = ReadItems::default();
    if input.get().starts_with('"') {
        let text = text_in("input", input)?;
        read.items
            .push(user_of(ParsedParts::of_text(text), None, "input")?);
        "input".clone_into(&mut read.newest_field);
        return read.finish();
    }
    for (index, given) in values::<MAX_ITEMS>("input", input)?.into_iter().enumerate() {
        let field = format!("input[{index}]");
        let item = RequestFields::of(&field, given.get())?;
        if item.text("type") != "item_reference" {
            read.read_item(&field, &item, given, system)?;
            continue;
        }
        let id = item.text("id");
        if id.starts_with(APPROVAL_PREFIX) {
            read.open();
            continue;
        }
        // The AI SDK references a search once as a call and once as its result.
        if !read.referred.insert(id.clone()) {
            continue;
        }
        let referred = stored.get(&field, &id)?;
        let item = RequestFields::of(&field, referred.get())?;
        read.read_item(&field, &item, &referred, system)?;
    }
    read.finish()
}

#[derive(Default)]
struct ReadItems {
    items: Vec<Item>,
    /// The assistant's message in progress, until another role's item follows.
    open: Option<OpenAnswer>,
    /// The field of the user's newest message.
    newest_field: String,
    /// The ids of the referenced items.
    referred: HashSet<String>,
}

#[derive(Default)]
struct OpenAnswer {
    texts: Vec<String>,
    calls: Vec<ItemCall>,
    given: Vec<String>,
    needs_original: bool,
}

impl ReadItems {
    fn finish(mut self) -> Result<Vec<Item>> {
        self.close();
        check_not_empty(&self.newest_field, &self.items)?;
        Ok(self.items)
    }

    fn open(&mut self) -> &mut OpenAnswer {
        self.open.get_or_insert_default()
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let items = if open.needs_original {
            stored_items(&format!("[{}]", open.given.join(",")))
        } else {
            None
        };
        self.items.push(Item::Assistant {
            text: open.texts.join("\n"),
            calls: open.calls,
            items,
        });
    }

    fn read_item(
        &mut self,
        field: &str,
        item: &RequestFields<'_>,
        given: &RawValue,
        system: &mut Vec<String>,
    ) -> Result<()> {
        let kind = item.text("type");
        match kind.as_str() {
            "" | "message" => self.read_message_item(field, item, given, system)?,
            "function_call" => {
                let call = ItemCall {
                    id: id_in(&format!("{field}.call_id"), item.find("call_id"))?,
                    name: id_in(&format!("{field}.name"), item.find("name"))?,
                    arguments: arguments_of(&item.text("arguments"))?,
                };
                let open = self.open();
                open.calls.push(call);
                open.given.push(given.get().to_owned());
            }
            "function_call_output" => {
                self.close();
                self.items.push(result_of(field, item, given)?);
            }
            "compaction" | "compaction_trigger" => {
                let message = format!(
                    "`{field}` has the type `{kind}`, which is not supported: the agent compacts its sessions itself."
                );
                return Err(Error::invalid(field, message));
            }
            "mcp_approval_response" => self.read_answer(field, item, given)?,
            _ if kind.ends_with("_output") => self.read_answer(field, item, given)?,
            // Without its encrypted content, a reasoning item is known only to the provider
            // that stored it.
            "reasoning" if item.find("encrypted_content").is_none() => {
                self.open();
            }
            _ => {
                let open = self.open();
                open.needs_original = true;
                open.given.push(given.get().to_owned());
            }
        }
        Ok(())
    }

    /// Adds the answer to a call that only the provider understands.
    fn read_answer(
        &mut self,
        field: &str,
        item: &RequestFields<'_>,
        given: &RawValue,
    ) -> Result<()> {
        self.close();
        let mut parsed = ParsedParts::default();
        parsed.add_lost(field.to_owned(), item);
        self.items.push(user_of(parsed, Some(given), field)?);
        Ok(())
    }

    fn read_message_item(
        &mut self,
        field: &str,
        item: &RequestFields<'_>,
        given: &RawValue,
        system: &mut Vec<String>,
    ) -> Result<()> {
        let at = format!("{field}.content");
        let Some(content) = item.find("content") else {
            return Err(Error::invalid(&at, format!("`{at}` is missing.")));
        };
        let mut parsed = if content.get().starts_with('"') {
            ParsedParts::of_text(text_in(&at, content)?)
        } else {
            parts_of(&at, content)?
        };
        parsed.needs_original |= item.has_others(&["id", "type", "role", "status", "content"]);
        let role = item.text("role");
        match role.as_str() {
            "system" | "developer" => system.push(parsed.text()),
            "user" => {
                self.close();
                self.items.push(user_of(parsed, Some(given), &at)?);
                self.newest_field = at;
            }
            "assistant" => {
                let is_plain = !parsed.needs_original && parsed.parts.len() == 1;
                let open = self.open();
                open.needs_original |= !is_plain || !open.given.is_empty();
                open.texts.push(parsed.text());
                open.given.push(given.get().to_owned());
            }
            _ => {
                let field = format!("{field}.role");
                let message =
                    format!("`{field}` must be `system`, `developer`, `user` or `assistant`.");
                return Err(Error::invalid(&field, message));
            }
        }
        Ok(())
    }
}

/// The parts of a message in the AI SDK's format.
#[derive(Default)]
struct ParsedParts {
    texts: Vec<String>,
    parts: Vec<Value>,
    others: Vec<String>,
    /// Whether the parts omit some of the item's content.
    needs_original: bool,
    /// The field of a part that only its provider can read.
    lost: Option<String>,
}

impl ParsedParts {
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

    fn add_text(&mut self, text: String) {
        self.parts.push(text_part(&text));
        self.texts.push(text);
    }

    fn add_file(&mut self, part: &RequestFields<'_>, file: Value, is_whole: bool) {
        self.others.push(part.digest());
        self.parts.push(file);
        self.needs_original |= !is_whole;
    }

    fn add_lost(&mut self, field: String, part: &RequestFields<'_>) {
        self.add_file(part, text_part(PROVIDER_FORMAT_NOTE), false);
        self.lost = Some(field);
    }
}

fn parts_of(field: &str, content: &RawValue) -> Result<ParsedParts> {
    let mut parsed = ParsedParts::default();
    for (index, part) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let part = RequestFields::of(&field, part.get())?;
        add_part(&mut parsed, field, &part);
    }
    Ok(parsed)
}

fn add_part(parsed: &mut ParsedParts, field: String, part: &RequestFields<'_>) {
    match part.text("type").as_str() {
        "input_text" | "text" => {
            parsed.needs_original |= part.has_others(&["type", "text"]);
            parsed.add_text(part.text("text"));
        }
        "output_text" => {
            let is_something = |name: &str| part.find(name).is_some_and(|it| it.get() != "[]");
            parsed.needs_original |= is_something("annotations") || is_something("logprobs");
            parsed.add_text(part.text("text"));
        }
        "refusal" => {
            parsed.needs_original = true;
            parsed.add_text(part.text("refusal"));
        }
        "input_image" if part.find("image_url").is_some() => {
            let is_auto = part
                .find_text("detail")
                .is_none_or(|detail| detail == "auto");
            let is_whole = is_auto && !part.has_others(&["type", "image_url", "detail"]);
            let file = file_part("image/*", &part.text("image_url"), None);
            parsed.add_file(part, file, is_whole);
        }
        "input_file" if part.text("file_data").starts_with("data:application/pdf") => {
            let (name, data) = (part.find_text("filename"), part.text("file_data"));
            let is_whole = !part.has_others(&["type", "filename", "file_data"]);
            let file = file_part("application/pdf", &data, name.as_deref());
            parsed.add_file(part, file, is_whole);
        }
        _ => parsed.add_lost(field, part),
    }
}

/// `given`: the original item, if there is one.
fn user_of(parsed: ParsedParts, given: Option<&RawValue>, field: &str) -> Result<Item> {
    let given = given.filter(|_| parsed.needs_original);
    let given = given.and_then(|given| stored_item(given.get()));
    let lost = parsed.lost.as_ref().map(|_| field.to_owned());
    check_given(lost, given.as_ref())?;
    Ok(Item::User {
        text: parsed.text(),
        parts: parsed.parts,
        others: parsed.others,
        given,
    })
}

fn result_of(field: &str, item: &RequestFields<'_>, given: &RawValue) -> Result<Item> {
    let call_id: Id = id_in(&format!("{field}.call_id"), item.find("call_id"))?;
    let at = format!("{field}.output");
    let parsed = match item.find("output") {
        None => ParsedParts::default(),
        Some(output) if output.get().starts_with('[') => parts_of(&at, output)?,
        Some(output) => ParsedParts::of_text(text_in(&at, output)?),
    };
    let is_whole = !parsed.needs_original && parsed.others.is_empty();
    let stored = if is_whole {
        None
    } else {
        stored_item(given.get())
    };
    check_given((!parsed.others.is_empty()).then_some(at), stored.as_ref())?;
    Ok(Item::Result {
        call_id,
        text: parsed.text(),
        is_error: false,
        given: stored,
    })
}
