//! The operations that write, or show, as much as a line of a file.

use crate::access::{Needs, Rule, Touches};

pub const fn rule(operation: &'static str, touches: Touches) -> Rule {
    Rule {
        operation,
        needs: Needs::Session,
        touches,
    }
}

pub const GET_SESSION: Rule = rule("getSession", Touches::Nothing);

pub const LOAD_EVENTS: Rule = rule("loadEvents", Touches::Nothing);

pub const ADD_USAGE: Rule = rule("addUsage", Touches::Session);

pub const SET_LEAF: Rule = rule("setLeaf", Touches::Session);

pub const DELETE_EVENTS: Rule = rule("deleteEvents", Touches::Session);

pub const DELETE_MESSAGES: Rule = rule("deleteMessages", Touches::Session);

pub const CLEAR_MESSAGES: Rule = rule("clearMessages", Touches::Session);

pub const UPDATE_MESSAGE: Rule = rule("updateMessage", Touches::Messages);

pub const ADD_COMPACTION: Rule = rule("addCompaction", Touches::Prompts);

pub const CONFIGURE_COMPACTION: Rule = rule("configureCompaction", Touches::Prompts);

pub const DEFINE_BLOCK: Rule = rule("defineBlock", Touches::Prompts);

pub const SET_BLOCK: Rule = rule("setBlock", Touches::Prompts);

pub const SET_ENTRY: Rule = rule("setEntry", Touches::Prompts);

pub const PUT_SKILL: Rule = rule("putSkill", Touches::Prompts);

pub const LOAD_SKILL: Rule = rule("loadSkill", Touches::Prompts);

pub const CALL_TOOL: Rule = rule("callTool", Touches::Prompts);
