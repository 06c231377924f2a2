//! Rules of requests that the types don't express: patterns, limits, and combinations of fields. A
//! request that follows them is rejected only because of the state of the agent or the deployment;
//! tests/python/openapi.test.mjs sends such requests.

use serde_json::{Value, json};

use api::table::OPERATIONS;
use base::filter::{MAX_FILTER_KEYS, MAX_FILTER_VALUES};
use chat::address::tool_headers::{MAX_HEADERS, MAX_NAME_BYTES, MAX_VALUE_BYTES};
use chat::run::agent::CHAT;
use models::choice::{MAX_MODEL_CHARS, Provider};

/// Control characters, in a class of a regular expression.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// A label of a block.
const LABEL: &str = "^[A-Za-z0-9_.-]([A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?$";

/// The name of a service binding.
const BINDING: &str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

/// A tool name that all providers accept.
pub const TOOL_NAME: &str = "^[A-Za-z0-9_-]{1,64}$";

/// The URL of a tool, of a tool server or of a callback.
const ADDRESS: &str = r#"^(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:[0-9]{1,5})?([/?][!-"$-\[\]-~]*)?$"#;

/// The URL of a file.
const FILE_ADDRESS: &str = "^([Dd][Aa][Tt][Aa]:|[Hh][Tt][Tt][Pp][Ss]://)";

/// A text of one line or more without other control characters.
pub fn without_control_characters() -> String {
    format!("^[^{CONTROL}]+$")
}

/// A model with its provider.
pub fn model() -> String {
    let providers = Provider::ALL.map(Provider::name).join("|");
    format!(r"^(demo|({providers}):[^\s{CONTROL}]{{1,{MAX_MODEL_CHARS}}})$")
}

/// The key of an entry or of a document: steps between `/`, none of them `.` or `..`. With
/// `placeholders`, the key of a source, in which a brace is part of a placeholder.
fn key(placeholders: bool) -> String {
    let (braces, placeholder) = if placeholders {
        ("{}", r"|\{(name|[1-9])\}")
    } else {
        ("", "")
    };
    let but = |more: &str| format!(r"([^/\\{braces}{more}{CONTROL}\u2028\u2029]{placeholder})");
    let (any, first) = (but(""), but("."));
    let step = format!(r"({first}{any}*|\.{first}{any}*|\.\.{any}+)");
    format!("^{step}(/{step}?)*$")
}

/// A part that a model can read: a text that is not blank, a file, or another part with content.
pub fn readable() -> Value {
    json!({"anyOf": [
        {
            "required": ["text"],
            "properties": {"type": {"const": "text"}, "text": {"type": "string", "pattern": r"\S"}}
        },
        {"properties": {"type": {"pattern": "^(file$|data-|source-|tool-)"}}}
    ]})
}

/// If `field` is this text, these fields are there and those are not. A field that is `null` is not
/// there. Generators of clients read no `if`, and see the shape as one.
fn of(field: &str, text: &str, with: &[&str], without: &[&str]) -> Value {
    let mut then = json!({"properties": {}, "required": with});
    for name in with {
        then["properties"][*name] = json!({"not": {"type": "null"}});
    }
    for name in without {
        then["properties"][*name] = json!({"type": "null"});
    }
    json!({"if": {"required": [field], "properties": {field: {"const": text}}}, "then": then})
}

/// If a block's source has this field, the block is of one of these kinds.
fn source_of(field: &str, kinds: &[&str]) -> Value {
    json!({
        "if": {"required": ["source"], "properties": {"source": {
            "type": "object", "required": [field], "properties": {field: {"type": "string"}}
        }}},
        "then": {"properties": {"kind": {"enum": kinds}}}
    })
}

/// The keywords of a shape, of an operation's input or of their fields: `Shape.field`,
/// `operation.field`, and `field[]` for the items. `allOf` is added to the `allOf` that is there.
pub fn rules() -> Vec<(&'static str, Value)> {
    [texts(), numbers(), messages(), choices(), places()].concat()
}

fn texts() -> Vec<(&'static str, Value)> {
    let line = format!(r"^[^{CONTROL}]*[^\s{CONTROL}][^{CONTROL}]*$");
    let mut rules = vec![
        ("Label", json!({"pattern": LABEL})),
        ("Tag", json!({"pattern": line})),
        (
            "addCompaction.summary",
            json!({"minLength": 1, "pattern": r"\S"}),
        ),
        (
            "findMentions.query",
            json!({"minLength": 3, "maxLength": 200}),
        ),
        ("eraseAgents.prefix", json!({"minLength": 1})),
        ("searchAgents.prefix", json!({"minLength": 1})),
        ("defineTool.name", json!({"pattern": TOOL_NAME})),
        ("defineTool.url", json!({"pattern": ADDRESS})),
        ("CallbackTarget.url", json!({"pattern": ADDRESS})),
        ("ServerServiceInput.service", json!({"pattern": BINDING})),
        (
            "ServerSourceInput",
            json!({"anyOf": [
                {"type": "string", "pattern": ADDRESS},
                {"$ref": "#/components/schemas/ServerServiceInput"}
            ]}),
        ),
        (
            "defineTool.headers",
            json!({
                "maxProperties": MAX_HEADERS,
                "propertyNames": {"pattern": format!("^[A-Za-z0-9!#$%&'*+.^_`|~-]{{1,{MAX_NAME_BYTES}}}$")},
                "additionalProperties": {
                    "type": "string",
                    "maxLength": MAX_VALUE_BYTES,
                    "pattern": r"^([!-~]([\t -~]*[!-~])?)?$"
                }
            }),
        ),
        ("BlockSource.service", json!({"pattern": BINDING})),
        (
            "BlockSource.agent",
            json!({"minLength": 1, "maxLength": 200, "pattern": r"^([^{}]|\{(name|[1-9])\})+$"}),
        ),
        ("BlockSource.r2", json!({"pattern": key(true)})),
        ("BlockSource.r2Prefix", json!({"pattern": key(true)})),
        ("File.mediaType", json!({"minLength": 1, "maxLength": 200})),
        ("File.url", json!({"pattern": FILE_ADDRESS})),
        (
            "Allow.models",
            json!({"allOf": [{"items": {"pattern": model()}}]}),
        ),
        (
            "Prices.models",
            json!({"propertyNames": {"pattern": model()}}),
        ),
    ];
    for place in [
        "configureAgent.model",
        "configureAgent.summaryModel",
        "LearnSettingsInput.model",
        "runTurn.model",
    ] {
        rules.push((place, json!({"pattern": model()})));
    }
    let described = format!(r"^[^{CONTROL}\u2028\u2029]*$");
    for place in ["defineBlock.description", "setEntry.title"] {
        rules.push((place, json!({"pattern": described, "maxLength": 1_000})));
    }
    for place in [
        "setEntry.key",
        "putSkill.key",
        "deleteSkill.key",
        "loadSkill.key",
    ] {
        rules.push((place, json!({"pattern": key(false)})));
    }
    rules
}

fn numbers() -> Vec<(&'static str, Value)> {
    vec![
        ("addUsage.cost", json!({"minimum": 0, "maximum": 1e15})),
        (
            "configureCompaction.compactAfter",
            json!({"minimum": 1, "maximum": 100_000_000}),
        ),
        (
            "configureCompaction.tailTokenBudget",
            json!({"maximum": 100_000_000}),
        ),
        (
            "configureCompaction.protectHead",
            json!({"maximum": 100_000}),
        ),
        (
            "configureCompaction.minTailMessages",
            json!({"maximum": 100_000}),
        ),
    ]
}

/// Events and messages: which fields go with which action or role.
fn messages() -> Vec<(&'static str, Value)> {
    const RESULT: &[&str] = &["toolCallId", "toolName", "isError"];
    const CALLS: &[&str] = &["toolCalls", "toolCallId", "toolName", "isError"];
    let actions = [
        "user_message",
        "agent_message",
        "system_instruction",
        "compaction",
    ];
    let mut events: Vec<Value> = actions
        .iter()
        .map(|action| of("action", action, &["content"], CALLS))
        .collect();
    let mut calls = of("action", "tool_call_request", &["toolCalls"], RESULT);
    calls["then"]["properties"]["toolCalls"] = json!({"type": "array", "minItems": 1});
    events.push(calls);
    events.push(of(
        "action",
        "tool_result",
        &["content", "toolCallId", "toolName"],
        &["toolCalls"],
    ));
    let mut roles = vec![
        of("role", "user", &[], CALLS),
        of("role", "system", &[], CALLS),
        of("role", "assistant", &[], RESULT),
        of("role", "tool", &["toolCallId"], &["toolCalls"]),
    ];
    for role in roles.iter_mut().skip(1) {
        role["then"]["properties"]["files"] = json!({"type": "array", "maxItems": 0});
    }
    let message = json!({"allOf": [{"$ref": "#/components/schemas/SentMessage"}]});
    let appended = json!({"allOf": [
        {"$ref": "#/components/schemas/SentMessage"},
        {
            "if": {"required": ["role"], "properties": {"role": {"const": "user"}}},
            "then": {"properties": {"parts": {"contains": readable()}}}
        }
    ]});
    let updated =
        json!({"allOf": [{"$ref": "#/components/schemas/SentMessage"}], "required": ["id"]});
    vec![
        ("NewEvent", json!({"allOf": events})),
        ("ContextMessageInput", json!({"allOf": roles})),
        ("AppendMessage.message", appended.clone()),
        ("appendMessage.message", appended),
        ("appendMessages.messages[]", message),
        ("updateMessage.message", updated),
        (
            "runTurn.message",
            json!({"allOf": [{"$ref": "#/components/schemas/SentUserMessage"}]}),
        ),
        (
            "runTurn.tools[]",
            json!({"allOf": [{"$ref": "#/components/schemas/ClientTool"}]}),
        ),
    ]
}

/// Fields that exclude or need each other.
fn choices() -> Vec<(&'static str, Value)> {
    let absent = json!({"type": "null"});
    let given = json!({"not": {"type": "null"}});
    let one = json!({"type": ["string", "number", "boolean", "null"]});
    let compared = json!({"type": ["string", "number"]});
    let decided = |yes: &str, no: &str| json!({"required": [yes], "properties": {yes: {"const": true}, no: {"const": false}}});
    // A name that a token can contain in addition to the operations.
    let mut operations: Vec<&str> = OPERATIONS.iter().map(|entry| entry.name).collect();
    operations.push(CHAT);
    let limit = |name: &str| json!({"required": [name], "properties": {name: given}});
    vec![
        (
            "applyRetention",
            json!({"allOf": [{"oneOf": [
                {"required": ["dryRun"], "properties": {"dryRun": {"const": true}, "cursor": absent}},
                {
                    "required": ["sessionId"],
                    "properties": {"sessionId": given, "dryRun": {"const": false}, "label": absent}
                },
                {"properties": {
                    "sessionId": absent, "dryRun": {"const": false}, "label": absent, "retention": absent, "cursor": absent
                }}
            ]}]}),
        ),
        (
            "decideProposal",
            json!({"allOf": [{"oneOf": [decided("approve", "reject"), decided("reject", "approve")]}]}),
        ),
        (
            "searchContext",
            json!({"allOf": [{"anyOf": [
                {
                    "required": ["label"],
                    "properties": {"label": given, "labels": {"maxItems": 7}}
                },
                {"required": ["labels"], "properties": {"labels": given, "label": absent}}
            ]}]}),
        ),
        (
            "CallbackTarget",
            json!({"allOf": [{"anyOf": [{"properties": {"url": absent}}, {"properties": {"service": absent}}]}]}),
        ),
        (
            "defineTool",
            json!({"allOf": [{"anyOf": [
                {
                    "required": ["description"],
                    "properties": {"mcp": absent, "oauth": absent, "description": given}
                },
                {
                    "required": ["mcp"],
                    "properties": {"mcp": given, "description": absent, "parameters": absent, "name": {"maxLength": 32}}
                }
            ]}]}),
        ),
        (
            "BlockSource",
            json!({"allOf": [{"anyOf": [
                {"properties": {"label": absent}},
                {"required": ["agent"], "properties": {"agent": given}}
            ]}]}),
        ),
        (
            "defineBlock",
            json!({"allOf": [
                source_of("r2", &["readonly", "writable"]),
                source_of("r2Prefix", &["loadable"])
            ]}),
        ),
        (
            "LearnSettingsInput",
            json!({"allOf": [{"anyOf": [
                {"required": ["into"], "properties": {"into": given}},
                {"maxProperties": 0}
            ]}]}),
        ),
        (
            "mintToken",
            json!({"allOf": [
                {
                    "if": {"required": ["preset"], "properties": {"preset": {"const": "chat"}}},
                    "then": {"required": ["sessionId"]}
                },
                {"if": {"required": ["holder"]}, "then": {"required": ["limits"]}}
            ]}),
        ),
        (
            "mintToken.operations",
            json!({"allOf": [{"items": {"enum": operations}}]}),
        ),
        (
            "mintToken.limits",
            json!({"allOf": [
                {"anyOf": [limit("turnsPerMinute"), limit("tokensPerDay"), limit("costPerDay")]},
                {"properties": {"turnsPerMinute": given, "tokensPerDay": given, "costPerDay": given}}
            ]}),
        ),
        (
            "Filter.metadata",
            json!({
                "maxProperties": MAX_FILTER_KEYS,
                "allOf": [{"additionalProperties": {"anyOf": [one, {
                    "type": "object",
                    "minProperties": 1,
                    "properties": {
                        "in": {"type": "array", "minItems": 1, "maxItems": MAX_FILTER_VALUES, "items": one},
                        "gt": compared,
                        "lt": compared
                    },
                    "additionalProperties": false
                }]}}]
            }),
        ),
    ]
}

/// The places that `findMentions` finds: which fields name a place of each kind.
fn places() -> Vec<(&'static str, Value)> {
    let kinds: &[(&str, &[&str])] = &[
        ("event", &["sessionId", "id"]),
        ("summary", &["sessionId", "id"]),
        ("session", &["sessionId"]),
        ("definition", &["label"]),
        ("block", &["label", "version"]),
        ("entry", &["label", "key"]),
        ("document", &["label", "key"]),
        ("version", &["label", "version"]),
        ("loadedDocument", &["sessionId", "label", "key"]),
        ("prompt", &[]),
        ("report", &["id"]),
        ("proposal", &["id"]),
    ];
    let kinds: Vec<Value> = kinds
        .iter()
        .map(|(kind, fields)| of("kind", kind, fields, &[]))
        .collect();
    vec![
        ("Mention", json!({"allOf": kinds})),
        ("Mention.label", json!({"pattern": LABEL})),
    ]
}
