//! What an event records, and the role of its author. Both are parsed once, where a row
//! or a request comes in.

use serde::{Deserialize, Serialize};

/// What an event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    UserMessage,
    AgentMessage,
    ToolCallRequest,
    ToolResult,
    SystemInstruction,
    Compaction,
}

impl Action {
    pub const ALL: [Self; 6] = [
        Self::UserMessage,
        Self::AgentMessage,
        Self::ToolCallRequest,
        Self::ToolResult,
        Self::SystemInstruction,
        Self::Compaction,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::UserMessage => "user_message",
            Self::AgentMessage => "agent_message",
            Self::ToolCallRequest => "tool_call_request",
            Self::ToolResult => "tool_result",
            Self::SystemInstruction => "system_instruction",
            Self::Compaction => "compaction",
        }
    }

    pub fn role(self) -> Role {
        match self {
            Self::UserMessage => Role::User,
            Self::AgentMessage | Self::ToolCallRequest => Role::Assistant,
            Self::ToolResult => Role::Tool,
            Self::SystemInstruction | Self::Compaction => Role::System,
        }
    }
}

/// The action in an event's row. An object that once had the documents' layout may have
/// rows with an action that this code doesn't know. Such rows are shown unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredAction {
    Known(Action),
    Other(String),
}

impl StoredAction {
    pub fn parse(name: &str) -> Self {
        let known = Action::ALL.into_iter().find(|action| action.name() == name);
        known.map_or_else(|| Self::Other(name.to_owned()), Self::Known)
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Known(action) => action.name(),
            Self::Other(name) => name,
        }
    }

    pub fn role(&self) -> Role {
        match self {
            Self::Known(action) => action.role(),
            Self::Other(_) => Role::System,
        }
    }
}

impl From<Action> for StoredAction {
    fn from(action: Action) -> Self {
        Self::Known(action)
    }
}

impl PartialEq<Action> for StoredAction {
    fn eq(&self, action: &Action) -> bool {
        matches!(self, Self::Known(known) if known == action)
    }
}

// The role of the author. No doc comment: the API document would take it as a
// description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    Tool,
    #[default]
    System,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_is_found_by_its_name_and_sent_by_it() {
        for action in Action::ALL {
            assert_eq!(StoredAction::parse(action.name()), action);
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
        }
    }

    #[test]
    fn a_word_that_is_none_of_ours_stays_as_it_is() {
        let stored = StoredAction::parse("note");
        assert_eq!(stored.name(), "note");
        assert_eq!(stored.role(), Role::System);
    }
}
