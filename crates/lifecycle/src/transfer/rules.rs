//! The access rules of operations that write or show the same data as a line of a file.

use access::{AccessRule, Effect, Needs};

pub const fn rule(operation: &'static str, effect: Effect) -> AccessRule {
    AccessRule {
        operation,
        needs: Needs::Session,
        effect,
    }
}

pub const GET_SESSION: AccessRule = rule("getSession", Effect::Nothing);

pub const LOAD_EVENTS: AccessRule = rule("loadEvents", Effect::Nothing);

pub const ADD_USAGE: AccessRule = rule("addUsage", Effect::Session);

pub const SET_LEAF: AccessRule = rule("setLeaf", Effect::Session);

pub const DELETE_EVENTS: AccessRule = rule("deleteEvents", Effect::Session);

pub const DELETE_MESSAGES: AccessRule = rule("deleteMessages", Effect::Session);

pub const CLEAR_MESSAGES: AccessRule = rule("clearMessages", Effect::Session);

pub const UPDATE_MESSAGE: AccessRule = rule("updateMessage", Effect::Messages);

pub const ADD_COMPACTION: AccessRule = rule("addCompaction", Effect::Prompts);

pub const CONFIGURE_COMPACTION: AccessRule = rule("configureCompaction", Effect::Prompts);

pub const DEFINE_BLOCK: AccessRule = rule("defineBlock", Effect::Prompts);

pub const SET_BLOCK: AccessRule = rule("setBlock", Effect::Prompts);

pub const SET_ENTRY: AccessRule = rule("setEntry", Effect::Prompts);

pub const PUT_SKILL: AccessRule = rule("putSkill", Effect::Prompts);

pub const LOAD_SKILL: AccessRule = rule("loadSkill", Effect::Prompts);

pub const CALL_TOOL: AccessRule = rule("callTool", Effect::Prompts);
