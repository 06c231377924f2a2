//! The source of what a model writes into memory.
//!
//! The rule this file protects: a model must not turn the content of a tool or a file into the
//! agent's own. After such content was in a turn's context, what the model writes has its source,
//! unless the user's own words support all of it.

use super::Toolbox;
use super::is_ours;
use crate::working_context::build::WorkingContext;
use base::action::Role;
use base::error::Result;
use conversation::log::user_texts::{find_copied_seq, load_users_texts};
use conversation::messages::tree::overlays::covers_results;
use learning::evidence::is_fully_supported;
use learning::naming::is_supported;
use memory::origin::Origin;
use memory::writer::MemoryWriter;
use models::message::ContextMessage;

/// A text that a model writes, with the names that the model gives it.
pub struct WrittenText<'a> {
    pub content: &'a str,
    pub names: Vec<&'a str>,
}

/// The less trusted of two sources, where there are any.
pub fn less_trusted(one: Option<Origin>, other: Option<Origin>) -> Option<Origin> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.or_less_trusted(other)),
        (one, other) => one.or(other),
    }
}

/// The source of a tool's answer: the tool, or the source that an answer of the memory quotes.
pub fn origin_of_result(tool: Option<&str>, output: &str) -> Option<Origin> {
    if tool.is_some_and(is_ours) {
        Origin::find_quoted(output)
    } else {
        Some(Origin::Tool)
    }
}

/// The least trusted source in a model's input. `None`: only the operator, the users and the agent.
pub fn find_untrusted(context: &WorkingContext, reminder: Option<&str>) -> Option<Origin> {
    let instructions = context.system_instructions.iter().map(String::as_str);
    let shown = instructions.chain(reminder).map(Origin::find_quoted);
    let messages = context.messages.iter().map(origin_of_message);
    shown.chain(messages).fold(None, less_trusted)
}

fn origin_of_message(message: &ContextMessage) -> Option<Origin> {
    match message.role {
        Role::Tool => {
            let tool = message.tool_name.as_ref().map(|name| name.as_str());
            origin_of_result(tool, &message.content)
        }
        Role::Assistant => message.untrusted.as_deref().and_then(Origin::parse),
        Role::User | Role::System => None,
    }
}

impl<'a> Toolbox<'a> {
    /// The writer of this text.
    pub(super) fn writer_of(&self, text: &WrittenText<'_>) -> Result<MemoryWriter<'a>> {
        let Some(untrusted) = self.find_untrusted()? else {
            return Ok(self.writer());
        };
        let source = (!self.is_supported(text)?).then_some(untrusted);
        Ok(MemoryWriter {
            source,
            ..self.writer()
        })
    }

    /// The least trusted source in the context of the turn. A caller of `callTool` is responsible
    /// for what it writes.
    fn find_untrusted(&self) -> Result<Option<Origin>> {
        let (Some(_), Some(session_id)) = (self.turn_id, self.session_id) else {
            return Ok(None);
        };
        if self.untrusted.is_some() {
            return Ok(self.untrusted);
        }
        let db = self.memory.db;
        if covers_results(db, session_id)? {
            return Ok(Some(Origin::Tool));
        }
        Ok((find_copied_seq(db, session_id)? > 0).then_some(Origin::Import))
    }

    /// Whether the user's own words in this session support all of a text.
    fn is_supported(&self, text: &WrittenText<'_>) -> Result<bool> {
        let Some(session_id) = self.session_id else {
            return Ok(false);
        };
        let db = self.memory.db;
        let copied_seq = find_copied_seq(db, session_id)?;
        let users_texts = load_users_texts(db, session_id, copied_seq)?;
        let users_texts = || users_texts.iter().map(String::as_str);
        let mut names = text.names.iter();
        Ok(is_fully_supported(text.content, users_texts())
            && names.all(|name| is_supported(name, text.content, users_texts())))
    }
}
