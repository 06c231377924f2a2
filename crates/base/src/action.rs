//! The actions that events record, and the roles of their authors. Both are parsed once, where a
//! row or a request comes in. Their names are only in this file, those in SQL included.

use crate::schema::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// The action of a message by `role` that calls no tools.
    pub fn of(role: Role) -> Self {
        match role {
            Role::User => Self::UserMessage,
            Role::Assistant => Self::AgentMessage,
            Role::Tool => Self::ToolResult,
            Role::System => Self::SystemInstruction,
        }
    }

    /// Whether the agent or one of its tools is the author.
    pub fn is_agents(self) -> bool {
        matches!(self.role(), Role::Assistant | Role::Tool)
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

/// SQL: the list of the actions for which [`Action::is_agents`] holds. A macro, because
/// `concat!` takes no constant.
#[macro_export]
macro_rules! agents_actions {
    () => {
        "('agent_message', 'tool_call_request', 'tool_result')"
    };
}
pub use agents_actions;

/// SQL: whether the event `$event` has one of the actions for which [`Action::is_agents`] holds.
/// For one row, comparisons are faster than a list, of which SQLite makes a table.
#[macro_export]
macro_rules! has_agents_action {
    ($event:literal) => {
        concat!(
            "(",
            $event,
            ".action = 'agent_message' OR ",
            $event,
            ".action = 'tool_call_request' OR ",
            $event,
            ".action = 'tool_result')"
        )
    };
}
pub use has_agents_action;

/// SQL: the action of a tool's result.
#[macro_export]
macro_rules! result_action {
    () => {
        "'tool_result'"
    };
}
pub use result_action;

/// SQL: the list of the actions that record words of a person or of the agent.
pub const MESSAGE_ACTIONS: &str = "('user_message', 'agent_message')";

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    Tool,
    #[default]
    System,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::Tool, Self::System];

    /// The roles that a message of the AI SDK may have.
    pub const OF_MESSAGES: [Self; 3] = [Self::User, Self::Assistant, Self::System];

    /// The role that a JSON string names. The string must be spelled without escapes.
    pub fn find_in_json(json: &str) -> Option<Self> {
        Self::find(json.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// The role of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    pub const fn name(self) -> &'static str {
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
    fn actions_round_trip_by_name() {
        for action in Action::ALL {
            assert_eq!(StoredAction::parse(action.name()), action);
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
        }
    }

    #[test]
    fn the_sql_lists_match_the_enum() {
        let list = |chosen: &dyn Fn(Action) -> bool| {
            let names = Action::ALL.into_iter().filter(|action| chosen(*action));
            let names: Vec<String> = names.map(|action| format!("'{}'", action.name())).collect();
            format!("({})", names.join(", "))
        };
        assert_eq!(agents_actions!(), list(&Action::is_agents));
        let comparisons: Vec<String> = Action::ALL
            .iter()
            .filter(|action| action.is_agents())
            .map(|action| format!("e.action = '{}'", action.name()))
            .collect();
        assert_eq!(
            has_agents_action!("e"),
            format!("({})", comparisons.join(" OR "))
        );
        let actions = [Action::UserMessage, Action::AgentMessage];
        assert_eq!(MESSAGE_ACTIONS, list(&|action| actions.contains(&action)));
    }

    #[test]
    fn roles_round_trip_by_name() {
        for role in Role::ALL {
            let json = serde_json::to_string(&role).unwrap();
            assert_eq!(json, format!("\"{}\"", role.name()));
            assert_eq!(Role::find_in_json(&json), Some(role));
            assert_eq!(Role::find(role.name()), Some(role));
            assert_eq!(Action::of(role).role(), role);
        }
        for other in ["user", "\"User\"", "\"\"", "\"", "5"] {
            assert_eq!(Role::find_in_json(other), None, "{other}");
        }
    }

    #[test]
    fn an_unknown_action_keeps_its_name() {
        let stored = StoredAction::parse("note");
        assert_eq!(stored.name(), "note");
        assert_eq!(stored.role(), Role::System);
    }
}
