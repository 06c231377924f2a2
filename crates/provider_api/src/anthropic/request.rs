//! Reads a request of Anthropic's Messages API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::openai::request::arguments_of;
use crate::refusal::ERROR_CODE;
use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, ParsedRequest, RequestFields, check_given,
    check_not_empty, count_marks, file_part, flag_in, id_in, object_of, parse_definition,
    parse_tools, stored_message, text_in, text_part, values,
};
use base::action::Action;
use base::error::{Code, Error, Result};
use base::json::{self, JsonObject, RawValue};
use models::ToolDefinition;
use models::caller_fields::{ObjectField, fields_of};

/// The schema of a tool whose definition only the provider has.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// The text that replaces a block in the provider's own format.
const PROVIDER_FORMAT_NOTE: &str =
    "(A block of this message is in a format that only its provider can read.)";

/// The system prompt's text, and its blocks if it has more than text.
type SystemPrompt = (Vec<String>, Vec<Box<RawValue>>);

pub fn parse(body: &[u8]) -> Result<ParsedRequest> {
    let body: JsonObject = json::parse(body)?;
    let mut fields = RequestFields::of("body", body.as_str())?;
    let model = fields.take_model()?;
    let is_streamed = flag_in("stream", fields.take("stream"))?;
    let choice = fields.find("tool_choice");
    let is_choice_free =
        choice.is_none_or(|choice| RequestFields(fields_of(choice.get())).text("type") == "auto");
    let (tools, given_tools) = match fields.take("tools") {
        Some(tools) => parse_tools(tools, parse_tool)?,
        None => (Vec::new(), BTreeMap::new()),
    };
    let prompt = match fields.take("system") {
        Some(system) => parse_system(system)?,
        None => (Vec::new(), Vec::new()),
    };
    let messages = fields
        .take("messages")
        .ok_or_else(|| Error::invalid("messages", "`messages` is missing."))?;
    let (items, instructions) = parse_messages(messages)?;
    let (system, system_blocks) = with_instructions(prompt, instructions)?;
    if let Some(thread) = fields.take("thread") {
        check_thread(thread)?;
    }
    // The cache marks in messages move with each request. Ours replace them.
    fields.take("cache_control");
    let given = given_tools.values().map(|tool| tool.get());
    let marks = given.chain(system_blocks.iter().map(|block| block.get()));
    let cache_marks = marks.map(count_marks).sum();
    let number = |name: &str| fields.find(name).map(RawValue::get);
    Ok(ParsedRequest {
        model,
        is_streamed,
        wants_usage: true,
        system,
        cache_marks,
        system_blocks,
        items,
        tools,
        given_tools,
        tool_list: Vec::new(),
        is_choice_free,
        max_tokens: number("max_tokens").and_then(|text| json::decode(text).ok()),
        temperature: number("temperature").and_then(|text| json::decode(text).ok()),
        fields: fields.into_object()?,
    })
}

/// A thread is a conversation whose earlier messages the provider stores. Here the history
/// identifies them, so a thread begins like any request. Anthropic's clients send the whole history
/// again if the answer is that the thread does not exist.
fn check_thread(thread: &RawValue) -> Result<()> {
    match RequestFields::of("thread", thread.get())?
        .text("type")
        .as_str()
    {
        "create" => Ok(()),
        "continue" => Err(Error::new(
            Code::MessageNotFound,
            "Threads are not stored here. Send the whole history in `messages`.",
        )
        .with(ERROR_CODE, "thread_not_found")
        .with_field("thread")),
        _ => Err(Error::invalid(
            "thread.type",
            "`thread.type` must be `create` or `continue`.",
        )),
    }
}

fn parse_tool(
    field: &str,
    tool: &RequestFields<'_>,
    given: &RawValue,
) -> Result<(ToolDefinition, Box<RawValue>)> {
    let definition = parse_definition(field, tool, ("input_schema", ANY_OBJECT))?;
    Ok((definition, given.to_owned()))
}

fn parse_system(system: &RawValue) -> Result<SystemPrompt> {
    if system.get().starts_with('"') {
        let text = text_in("system", system)?;
        return Ok((
            Some(text)
                .filter(|text| !text.is_empty())
                .into_iter()
                .collect(),
            Vec::new(),
        ));
    }
    let blocks = values::<MAX_PARTS>("system", system)?;
    let read = blocks.iter().enumerate();
    let read =
        read.map(|(index, block)| RequestFields::of(&format!("system[{index}]"), block.get()));
    let read = read.collect::<Result<Vec<_>>>()?;
    let texts: Vec<String> = read
        .iter()
        .filter_map(|block| block.find_text("text"))
        .collect();
    let is_plain = read
        .iter()
        .all(|block| !block.has_others(&["type", "text"]));
    let given = if is_plain {
        Vec::new()
    } else {
        blocks.into_iter().map(ToOwned::to_owned).collect()
    };
    // One text, so that the blocks correspond to exactly one.
    let text = texts.join("\n\n");
    Ok((
        Some(text)
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect(),
        given,
    ))
}

/// Adds the instructions between messages to the system prompt. The log has only what the user, the
/// assistant and tools said.
fn with_instructions(
    (mut system, mut blocks): SystemPrompt,
    instructions: Vec<String>,
) -> Result<SystemPrompt> {
    if !blocks.is_empty() {
        for text in &instructions {
            blocks.push(json::raw(json::text(&text_part(text)))?);
        }
    }
    system.extend(instructions);
    // One text, so that the blocks correspond to exactly one.
    let text = system.join("\n\n");
    let system = Some(text).filter(|text| !text.is_empty());
    Ok((system.into_iter().collect(), blocks))
}

/// The messages of the user and the assistant, and the instructions between them.
fn parse_messages(messages: &RawValue) -> Result<(Vec<Item>, Vec<String>)> {
    let mut items = Vec::new();
    let mut newest_field = String::new();
    let mut instructions = Vec::new();
    // These apply until the user's next message.
    let mut passing: Vec<String> = Vec::new();
    for (index, message) in values::<MAX_ITEMS>("messages", messages)?
        .into_iter()
        .enumerate()
    {
        let field = format!("messages[{index}]");
        let parts = RequestFields::of(&field, message.get())?;
        let content = parts.find("content").ok_or_else(|| {
            let field = format!("{field}.content");
            Error::invalid(&field, format!("`{field}` is missing."))
        })?;
        match parts.text("role").as_str() {
            "user" => {
                passing.clear();
                newest_field = format!("{field}.content");
                parse_user(&newest_field, content, &mut items)?;
            }
            "assistant" => items.push(parse_assistant(&format!("{field}.content"), content)?),
            "system" => {
                let text = parse_instruction(&format!("{field}.content"), content)?;
                match parts.text("clear_at").as_str() {
                    _ if text.is_empty() => {}
                    "next_user_message" => passing.push(text),
                    _ => instructions.push(text),
                }
            }
            _ => {
                let field = format!("{field}.role");
                let message = format!("`{field}` must be `user`, `assistant` or `system`.");
                return Err(Error::invalid(&field, message));
            }
        }
    }
    instructions.append(&mut passing);
    check_not_empty(&newest_field, &items)?;
    Ok((items, instructions))
}

/// The text of an instruction between messages. Other blocks in it would change tools.
fn parse_instruction(field: &str, content: &RawValue) -> Result<String> {
    if content.get().starts_with('"') {
        return text_in(field, content);
    }
    let mut texts = Vec::new();
    for (index, block) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let GivenBlock { kind, fields, .. } = GivenBlock::read(&field, block)?;
        if kind != "text" {
            let message = format!(
                "`{field}` has the type `{kind}`, which is not supported between messages."
            );
            return Err(Error::invalid(&field, message));
        }
        texts.push(fields.text("text"));
    }
    Ok(texts.join("\n"))
}

/// The results in a user's message, then what the user says.
fn parse_user(field: &str, content: &RawValue, items: &mut Vec<Item>) -> Result<()> {
    if content.get().starts_with('"') {
        let text = text_in(field, content)?;
        items.push(Item::User {
            parts: vec![text_part(&text)],
            text,
            others: Vec::new(),
            given: None,
        });
        return Ok(());
    }
    let mut blocks = ParsedBlocks::default();
    for (index, block) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let block = GivenBlock::read(&field, block)?;
        match block.kind.as_str() {
            kind if kind == Action::ToolResult.name() => items.push(parse_result(&field, &block)?),
            _ => blocks.add(field, &block)?,
        }
    }
    items.extend(blocks.into_item()?);
    Ok(())
}

/// A parsed block of a message.
struct GivenBlock<'a> {
    kind: String,
    given: &'a RawValue,
    fields: RequestFields<'a>,
}

impl<'a> GivenBlock<'a> {
    fn read(field: &str, given: &'a RawValue) -> Result<Self> {
        let fields = RequestFields::of(field, given.get())?;
        Ok(Self {
            kind: fields.text("type"),
            given,
            fields,
        })
    }

    /// The block without its cache mark.
    fn without_mark(&self) -> Result<String> {
        if self.fields.find("cache_control").is_none() {
            return Ok(self.given.get().to_owned());
        }
        let fields = self.fields.0.iter();
        let others = fields.filter(|(name, _)| name != "cache_control");
        let others: Vec<ObjectField<'_>> = others.cloned().collect();
        object_of(&others).map(|object| object.as_str().to_owned())
    }
}

/// The blocks of a user's message that are not results.
#[derive(Default)]
struct ParsedBlocks {
    texts: Vec<String>,
    parts: Vec<Value>,
    others: Vec<String>,
    given: Vec<String>,
    needs_original: bool,
    lost: Option<String>,
}

impl ParsedBlocks {
    fn add(&mut self, field: String, block: &GivenBlock<'_>) -> Result<()> {
        self.given.push(block.without_mark()?);
        let fields = &block.fields;
        if block.kind == "text" {
            let text = fields.text("text");
            self.needs_original |= fields.has_others(&["type", "text", "cache_control"]);
            self.parts.push(text_part(&text));
            self.texts.push(text);
            return Ok(());
        }
        self.others.push(fields.digest());
        match file_of(&field, block)? {
            Some((file, is_whole)) => {
                self.needs_original |= !is_whole;
                self.parts.push(file);
            }
            None => {
                self.needs_original = true;
                self.lost = Some(field);
                self.parts.push(text_part(PROVIDER_FORMAT_NOTE));
            }
        }
        Ok(())
    }

    fn into_item(self) -> Result<Option<Item>> {
        if self.parts.is_empty() {
            return Ok(None);
        }
        let given = if self.needs_original {
            stored_message(&format!("[{}]", self.given.join(",")))
        } else {
            None
        };
        check_given(self.lost, given.as_ref())?;
        Ok(Some(Item::User {
            text: self.texts.join("\n"),
            parts: self.parts,
            others: self.others,
            given,
        }))
    }
}

/// An image or a document in the format of the AI SDK, and whether that format has all of the block's fields.
fn file_of(field: &str, block: &GivenBlock<'_>) -> Result<Option<(Value, bool)>> {
    let fields = &block.fields;
    let is_image = match block.kind.as_str() {
        "image" => true,
        "document" => false,
        _ => return Ok(None),
    };
    let source = fields.within(field, "source")?;
    let url = match source.text("type").as_str() {
        "base64" => {
            let (media_type, data) = (source.text("media_type"), source.text("data"));
            format!("data:{media_type};base64,{data}")
        }
        "url" => source.text("url"),
        _ => return Ok(None),
    };
    Ok(Some(if is_image {
        let is_whole = !fields.has_others(&["type", "source", "cache_control"]);
        (file_part("image/*", &url, None), is_whole)
    } else {
        let title = fields.find_text("title");
        let is_whole = !fields.has_others(&["type", "source", "title", "cache_control"]);
        (
            file_part("application/pdf", &url, title.as_deref()),
            is_whole,
        )
    }))
}

fn parse_result(field: &str, block: &GivenBlock<'_>) -> Result<Item> {
    let known = [
        "type",
        "tool_use_id",
        "content",
        "is_error",
        "cache_control",
    ];
    let fields = &block.fields;
    let mut is_plain = !fields.has_others(&known);
    let text = match fields.find("content") {
        None => String::new(),
        Some(content) if content.get().starts_with('"') => text_in(field, content)?,
        Some(content) => {
            let field = format!("{field}.content");
            let blocks = values::<MAX_PARTS>(&field, content)?
                .into_iter()
                .enumerate();
            let mut texts = Vec::new();
            for (index, block) in blocks {
                let block = GivenBlock::read(&format!("{field}[{index}]"), block)?;
                match block.kind.as_str() {
                    "text" => texts.push(block.fields.text("text")),
                    _ => is_plain = false,
                }
            }
            texts.join("\n")
        }
    };
    let given = if is_plain {
        None
    } else {
        stored_message(&format!("[{}]", block.without_mark()?))
    };
    Ok(Item::Result {
        call_id: id_in(&format!("{field}.tool_use_id"), fields.find("tool_use_id"))?,
        text,
        is_error: flag_in(&format!("{field}.is_error"), fields.find("is_error"))?,
        given,
    })
}

/// What the assistant said. Its thoughts are ignored: the log has its own.
fn parse_assistant(field: &str, content: &RawValue) -> Result<Item> {
    if content.get().starts_with('"') {
        return Ok(Item::Assistant {
            text: text_in(field, content)?,
            calls: Vec::new(),
            items: None,
        });
    }
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for (index, block) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let GivenBlock { kind, fields, .. } = GivenBlock::read(&field, block)?;
        match kind.as_str() {
            "text" => texts.push(fields.text("text")),
            "tool_use" => calls.push(ItemCall {
                id: id_in(&format!("{field}.id"), fields.find("id"))?,
                name: id_in(&format!("{field}.name"), fields.find("name"))?,
                arguments: arguments_of(fields.find("input").map_or("", RawValue::get))?,
            }),
            _ => {}
        }
    }
    Ok(Item::Assistant {
        text: texts.join("\n"),
        calls,
        items: None,
    })
}
