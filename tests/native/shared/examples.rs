//! The table of example requests, with examples of every operation. Tests of all operations run
//! these examples, and fail for an operation without one.
//!
//! The requests go to the agent of [`populated`]. The first example of an operation names session
//! `s` if the operation needs a session; openapi.json shows it.

use std::sync::{Mutex, OnceLock};

use serde_json::{Value, json};

use crate::Alice;
use api::table::OPERATIONS;
use base::host::Host as _;
use base::testing::archive::MemoryArchive;
use base::testing::{FixedHost, Sqlite};
use lifecycle::testing::guarded_tables;
use memory::proposals::rows::{StoredProposal, restore};
use memory::proposals::{ProposalKind, ProposalNote};

/// Operations that write nothing. Every other operation, but those of [`TURNS`], has an
/// example that writes.
pub const READS: &[&str] = &[
    "getSession",
    "listSessions",
    "getUsage",
    "getTurns",
    "getTurn",
    "loadEvents",
    "buildWorkingContext",
    "getMessage",
    "getHistory",
    "getBranches",
    "getLatestLeaf",
    "getPathLength",
    "getChanges",
    // The first search builds the index, which the tests of search check. Every later search
    // only reads.
    "search",
    "getCompactions",
    "estimateTokens",
    "getBlock",
    "getBlocks",
    "getBlockVersions",
    "listEntries",
    "getEntry",
    "searchContext",
    "listSkills",
    "renderPrompt",
    "getReminder",
    "getTools",
    // This operation only stops a turn: the turn itself writes, which the tests of chat check.
    "cancelTurn",
    "listTools",
    "getConfig",
    "getStats",
    "verify",
    "listAgents",
    "searchAgents",
    // The example only starts it. Tests of retention check its deletions.
    "applyRetention",
    // There are no new messages, and there is one entry. Tests of learning check the writes.
    "learn",
    "consolidate",
    "getProposals",
    "loadForeignRows",
    // The file is written to the bucket, which the tests of backups check.
    "backup",
    "listBackups",
    // The example's agent contains what the backup contains.
    "restoreBackup",
    "getBookmark",
    // The platform restores, not this code.
    "restoreBookmark",
    "mintToken",
    "findMentions",
    "verifyReceipt",
];

/// Operations that start a turn, which continues to write after the operation's own transaction.
/// Tests of chat fail each statement of a turn.
pub const TURNS: &[&str] = &["runTurn"];

/// A backup of what [`populate`] created.
pub const BACKUP: &str = "alice/000000001000000.ndjson";

pub struct Example {
    pub operation: &'static str,
    pub body: Value,
}

impl Example {
    pub fn begins_turn(&self) -> bool {
        TURNS.contains(&self.operation)
    }

    pub fn writes(&self) -> bool {
        !READS.contains(&self.operation) && !self.begins_turn()
    }
}

/// An agent with data of every kind: sessions `s` and `t`, a branch, a chosen
/// leaf, media, an overlay, blocks of every kind, a registered tool.
pub fn populated() -> Alice {
    /// Thousands of agents start with the same data: it is created for the first one and copied for
    /// the others.
    static FIRST: OnceLock<(Vec<u8>, Mutex<FixedHost>, Vec<u8>)> = OnceLock::new();
    let (file, host, backup) = FIRST.get_or_init(|| {
        let mut alice = Alice::default();
        populate(&alice);
        let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
        let backup = backup_bucket.objects.borrow()[BACKUP].clone();
        (alice.db.bytes(), Mutex::new(alice.host), backup)
    });
    let db = Sqlite::from_file(file);
    db.guard(guarded_tables());
    let alice = Alice {
        db,
        host: host.lock().unwrap().clone(),
        ..Alice::default()
    };
    script_environment(&alice);
    store_backup(&alice, backup.clone());
    alice
}

/// Creates the data of [`populated`] in an agent without these sessions.
pub fn populate(alice: &Alice) {
    alice.ok("createSession", json!({"id": "s"}));
    script_environment(alice);
    populate_tables(alice);
    store_backup(alice, alice.export_agent().into_bytes());
}

/// Scripts everything outside of the agent.
fn script_environment(alice: &Alice) {
    // The script's directory has this agent alone.
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("DIRECTORY".to_owned());
    let settings = [("MODEL", "demo"), ("TOOL_ORIGINS", "https://tools.example")];
    for (name, value) in settings {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    }
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    alice.recovery.since_ms.set(Some(0));
}

fn store_backup(alice: &Alice, file: Vec<u8>) {
    let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
    backup_bucket
        .objects
        .borrow_mut()
        .insert(BACKUP.to_owned(), file);
}

fn populate_tables(alice: &Alice) {
    let event_ids = alice.append_texts(&["1", "2", "3", "4"]);
    alice.ok("appendEvents", json!({"sessionId": "s", "parentId": event_ids[1], "events": [{"id": "b1", "action": "user_message", "content": "My parcel is late."}]}));
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
            {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"}
        ]}),
    );
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": picture("pic", "a")}),
    );
    alice.ok(
        "createSession",
        json!({"id": "t", "parentSessionId": "s", "metadata": {"a": 1}}),
    );
    alice.ok(
        "configureAgent",
        json!({"maxSteps": 5, "learn": {"into": "kb", "after": "manual"}}),
    );
    alice.ok(
        "defineTool",
        json!({"name": "echo", "description": "Says it again.", "url": "https://tools.example/echo"}),
    );
    remove_deployed_tool(alice);
    let compaction =
        json!({"sessionId": "s", "summary": "x", "fromId": event_ids[1], "toId": "b1"});
    alice.ok("addCompaction", compaction);
    let settings =
        json!({"sessionId": "s", "protectHead": 1, "tailTokenBudget": 1, "minTailMessages": 1});
    alice.ok("configureCompaction", settings);
    for session in [json!(null), json!("s")] {
        populate_memory(alice, &session);
    }
    alice.ok(
        "loadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "k"}),
    );
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    for session in [json!(null), json!("s")] {
        let body = json!({"sessionId": session, "label": "memory", "content": "b"});
        alice.ok("setBlock", body);
    }
    populate_proposals(alice);
}

/// Removes the tool `gone`, which was deployed when the agent was created.
pub fn remove_deployed_tool(alice: &Alice) {
    let tool =
        json!({"name": "gone", "description": "Is gone.", "url": "https://tools.example/gone"});
    let file = json!({"tools": [tool]}).to_string();
    let deployed = alice.outbound.defaults_file.replace(Some(file));
    alice.ok("removeTool", json!({"name": "gone"}));
    alice.outbound.defaults_file.replace(deployed);
}

/// A proposal that waits, and one that wrote the entry `k`.
pub fn populate_proposals(alice: &Alice) {
    for (number, key, status) in [(1, "parcel", "pending"), (2, "k", "applied")] {
        let change = json!({
            "index": 0, "action": "add", "label": "kb", "key": key, "content": "c",
            "events": [{"sessionId": "s", "id": "b1", "seq": 5}], "source": "user",
            "status": status, "madeFor": 0, "version": 1,
        });
        let proposal = StoredProposal {
            number,
            session_id: "s".to_owned(),
            kind: ProposalKind::Learn,
            label: "kb".to_owned(),
            note: ProposalNote {
                created_at: alice.host.now_ms(),
                ..ProposalNote::default()
            },
            changes: vec![serde_json::from_value(change).unwrap()],
        };
        restore(&alice.db, &proposal).unwrap();
    }
}

pub fn populate_memory(alice: &Alice, session: &Value) {
    for (label, kind) in [
        ("memory", "writable"),
        ("kb", "searchable"),
        ("skills", "loadable"),
    ] {
        alice.ok(
            "defineBlock",
            json!({"sessionId": session, "label": label, "kind": kind, "whenChanged": "remind"}),
        );
    }
    for (operation, mut body) in [
        ("setBlock", json!({"label": "memory", "content": "a"})),
        (
            "setEntry",
            json!({"label": "kb", "key": "k", "content": "c"}),
        ),
        (
            "putSkill",
            json!({"label": "skills", "key": "k", "content": "c"}),
        ),
    ] {
        body["sessionId"] = session.clone();
        alice.ok(operation, body);
    }
}

pub fn picture(id: &str, word: &str) -> Value {
    let url = format!("data:image/png;base64,{}", word.repeat(5_000));
    json!({"id": id, "role": "user", "parts": [{"type": "file", "url": url}]})
}

/// Every operation's examples, in the order of the table of operations.
pub fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = about_sessions()
        .into_iter()
        .chain(about_events())
        .chain(about_messages())
        .chain(about_compaction())
        .chain(about_blocks())
        .chain(about_entries_and_skills())
        .chain(about_prompts_and_tools())
        .chain(about_learning())
        .chain(about_the_agent())
        .map(|(operation, body)| Example { operation, body })
        .collect();
    examples.sort_by_key(|example| {
        OPERATIONS
            .iter()
            .position(|entry| entry.name == example.operation)
    });
    examples
}

pub type Bodies = Vec<(&'static str, Value)>;

/// The ids that [`populated`] mints. They are the same in every such agent, because the
/// host's random bytes are the same.
pub struct Minted {
    event: Value,
    run: Value,
    compaction: Value,
}

pub fn minted() -> Minted {
    let alice = populated();
    let events = alice.events();
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    Minted {
        event: events[1]["id"].clone(),
        run: events[5]["id"].clone(),
        compaction: listed["compactions"][0]["id"].clone(),
    }
}

pub fn about_sessions() -> Bodies {
    let b1 = json!("b1");
    vec![
        (
            "createSession",
            json!({"id": "u", "name": "A parcel", "parentSessionId": "s"}),
        ),
        ("getSession", json!({"sessionId": "s"})),
        ("listSessions", json!({})),
        (
            "updateSession",
            json!({"sessionId": "s", "name": "A parcel", "metadata": {"topic": "orders"}}),
        ),
        ("deleteSession", json!({"sessionId": "s"})),
        (
            "addUsage",
            json!({"sessionId": "s", "inputTokens": 5, "contextTokens": 4, "cost": 1.5}),
        ),
        (
            "addUsage",
            json!({"sessionId": "s", "cachedInputTokens": 5, "id": "call-1"}),
        ),
        ("getUsage", json!({"sessionId": "s", "by": "turn"})),
        ("getUsage", json!({"sessionId": "s", "by": "day"})),
        ("getUsage", json!({"by": "model", "since": 1})),
        ("getTurns", json!({"sessionId": "s"})),
        ("getTurns", json!({"failed": true, "limit": 5})),
        ("getTurns", json!({})),
        ("getTurn", json!({"turnId": "2.f4240.s"})),
        ("forkSession", json!({"sessionId": "s"})),
        ("forkSession", json!({"sessionId": "s", "atId": b1})),
        ("setLeaf", json!({"sessionId": "s", "id": b1})),
    ]
}

pub fn about_events() -> Bodies {
    let Minted { event, .. } = minted();
    let big: Vec<Value> = (0..5)
        .map(|n| json!({"id": format!("big-{n}"), "action": "user_message", "content": "x".repeat(400_000)}))
        .collect();
    vec![
        (
            "appendEvents",
            json!({"sessionId": "s", "events": [{"action": "user_message", "content": "Where is my parcel?"}]}),
        ),
        (
            "appendEvents",
            json!({"sessionId": "s", "parentId": "b1", "events": [
                {"id": "c", "action": "user_message", "content": "6"},
                {"action": "agent_message", "content": "7"}
            ]}),
        ),
        ("appendEvents", json!({"sessionId": "s", "events": big})),
        ("loadEvents", json!({"sessionId": "s"})),
        (
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ["b1", event]}),
        ),
        ("buildWorkingContext", json!({"sessionId": "s"})),
        (
            "buildWorkingContext",
            json!({"sessionId": "s", "format": "anthropic"}),
        ),
        (
            "persistWorkingContext",
            json!({"sessionId": "s", "messages": [{"role": "user", "content": "Where is my parcel?"}]}),
        ),
        ("getChanges", json!({"sessionId": "s"})),
        ("search", json!({"sessionId": "s", "query": "parcel"})),
        ("search", json!({"query": "parcel"})),
    ]
}

pub fn about_messages() -> Bodies {
    let Minted { run, .. } = minted();
    let parts = json!([{"type": "text", "text": "Where are my parcels?"}]);
    let plain = json!({"id": "m", "role": "user", "parts": parts});
    let b1 = json!({"id": "b1", "role": "user", "parts": parts});
    let one = json!({"id": run, "role": "assistant", "parts": []});
    let message = |message: &Value| json!({"sessionId": "s", "message": message});
    vec![
        ("appendMessage", message(&plain)),
        ("appendMessage", message(&picture("pic2", "b"))),
        (
            "appendMessages",
            json!({"sessionId": "s", "messages": [plain, picture("pic3", "b")]}),
        ),
        ("updateMessage", message(&b1)),
        ("updateMessage", message(&picture("pic", "b"))),
        ("upsertMessage", message(&plain)),
        ("upsertMessage", message(&one)),
        ("getMessage", json!({"sessionId": "s", "messageId": "b1"})),
        ("getHistory", json!({"sessionId": "s"})),
        ("getBranches", json!({"sessionId": "s", "messageId": "b1"})),
        ("getLatestLeaf", json!({"sessionId": "s"})),
        ("getPathLength", json!({"sessionId": "s"})),
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["b1", run]}),
        ),
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["pic"]}),
        ),
        ("clearMessages", json!({"sessionId": "s"})),
    ]
}

pub fn about_compaction() -> Bodies {
    let Minted {
        event, compaction, ..
    } = minted();
    vec![
        (
            "configureCompaction",
            json!({"sessionId": "s", "protectHead": 2}),
        ),
        ("configureCompaction", json!({"protectHead": 1})),
        ("compact", json!({"sessionId": "s"})),
        (
            "addCompaction",
            json!({"sessionId": "s", "summary": "They asked about a parcel.", "fromId": event, "toId": "b1"}),
        ),
        ("getCompactions", json!({"sessionId": "s"})),
        (
            "deleteCompaction",
            json!({"sessionId": "s", "compactionId": compaction}),
        ),
        ("estimateTokens", json!({"sessionId": "s"})),
    ]
}

pub fn about_blocks() -> Bodies {
    vec![
        (
            "defineBlock",
            json!({"sessionId": "s", "label": "rules", "kind": "readonly", "defaultContent": "Answer in English."}),
        ),
        (
            "defineBlock",
            json!({"label": "memory", "kind": "writable", "maxTokens": 9}),
        ),
        ("removeBlock", json!({"sessionId": "s", "label": "memory"})),
        ("removeBlock", json!({"label": "kb", "purge": true})),
        ("getBlock", json!({"sessionId": "s", "label": "memory"})),
        ("getBlock", json!({"label": "memory"})),
        ("getBlocks", json!({"sessionId": "s"})),
        ("getBlocks", json!({})),
        (
            "setBlock",
            json!({"sessionId": "s", "label": "memory", "content": "Likes short answers."}),
        ),
        ("setBlock", json!({"label": "memory", "content": "c"})),
        (
            "appendToBlock",
            json!({"sessionId": "s", "label": "memory", "content": "Lives in Lisbon."}),
        ),
        ("appendToBlock", json!({"label": "memory", "content": "c"})),
        (
            "getBlockVersions",
            json!({"sessionId": "s", "label": "memory"}),
        ),
        (
            "revertBlock",
            json!({"sessionId": "s", "label": "memory", "version": 0}),
        ),
        ("revertBlock", json!({"label": "memory", "version": 1})),
        ("clearBlocks", json!({"sessionId": "s"})),
        ("clearBlocks", json!({})),
    ]
}

pub fn about_entries_and_skills() -> Bodies {
    let kb = |key: &str, content: &str| json!({"sessionId": "s", "label": "kb", "key": key, "content": content});
    vec![
        ("setEntry", kb("opening-hours", "Open from 9 to 17.")),
        ("setEntry", kb("k", "other")),
        (
            "setEntry",
            json!({"label": "kb", "key": "k", "content": "other"}),
        ),
        (
            "deleteEntry",
            json!({"sessionId": "s", "label": "kb", "key": "k"}),
        ),
        ("deleteEntry", json!({"label": "kb", "key": "k"})),
        (
            "deleteEntry",
            json!({"label": "kb", "key": "k", "purge": true}),
        ),
        (
            "setEntry",
            json!({"label": "kb", "key": "marked", "content": "other", "metadata": {"city": "Oslo"}, "tags": ["travel"], "source": "user", "events": ["m1"]}),
        ),
        ("listEntries", json!({"sessionId": "s", "label": "kb"})),
        (
            "listEntries",
            json!({"label": "kb", "where": {"metadata": {"city": {"in": ["Oslo", "Rome"]}}, "tags": {"none": ["old"]}}}),
        ),
        (
            "getEntry",
            json!({"sessionId": "s", "label": "kb", "key": "opening-hours"}),
        ),
        ("getEntry", json!({"label": "kb", "key": "nothing"})),
        (
            "searchContext",
            json!({"sessionId": "s", "labels": ["kb"], "query": "c", "where": {"tags": {"any": ["travel"]}}}),
        ),
        (
            "searchContext",
            json!({"sessionId": "s", "label": "kb", "query": "c"}),
        ),
        (
            "putSkill",
            json!({"sessionId": "s", "label": "skills", "key": "k", "content": "To refund an order, ask for its number."}),
        ),
        (
            "putSkill",
            json!({"label": "skills", "key": "new", "content": "other"}),
        ),
        (
            "deleteSkill",
            json!({"sessionId": "s", "label": "skills", "key": "k"}),
        ),
        ("deleteSkill", json!({"label": "skills", "key": "k"})),
        (
            "deleteSkill",
            json!({"label": "skills", "key": "k", "purge": true}),
        ),
        ("listSkills", json!({"sessionId": "s", "label": "skills"})),
        // Session `s` has loaded the document already.
        (
            "loadSkill",
            json!({"sessionId": "t", "label": "skills", "key": "k"}),
        ),
        (
            "unloadSkill",
            json!({"sessionId": "s", "label": "skills", "key": "k"}),
        ),
    ]
}

pub fn about_prompts_and_tools() -> Bodies {
    let write = |label: &str| json!({"label": label, "content": "t", "metadata": {"title": "T"}});
    vec![
        ("renderPrompt", json!({"sessionId": "s"})),
        ("renderPrompt", json!({"format": "xml"})),
        // The prompt of session `s` is frozen already.
        ("freezePrompt", json!({"sessionId": "t"})),
        ("freezePrompt", json!({})),
        ("refreshPrompt", json!({"sessionId": "s"})),
        ("refreshPrompt", json!({"sessionId": "t"})),
        ("refreshPrompts", json!({})),
        ("getReminder", json!({"sessionId": "s"})),
        ("getTools", json!({"sessionId": "s"})),
        (
            "callTool",
            json!({"sessionId": "s", "name": "set_context", "arguments": {"label": "memory", "content": "Lives in Lisbon."}}),
        ),
        (
            "callTool",
            json!({"name": "set_context", "arguments": write("skills")}),
        ),
        (
            "runTurn",
            json!({"sessionId": "s", "message": {"id": "q1", "role": "user", "parts": [{"type": "text", "text": "Where is my parcel?"}]}}),
        ),
        ("cancelTurn", json!({"sessionId": "s"})),
        (
            "defineTool",
            json!({"name": "track", "description": "Finds a parcel.", "url": "https://tools.example/track"}),
        ),
        ("removeTool", json!({"name": "echo"})),
        ("removeTool", json!({"name": "gone", "restore": true})),
        ("listTools", json!({})),
    ]
}

pub fn about_learning() -> Bodies {
    vec![
        ("learn", json!({})),
        ("consolidate", json!({"label": "kb"})),
        ("getProposals", json!({"status": "pending", "limit": 10})),
        ("decideProposal", json!({"id": "1", "approve": true})),
        (
            "decideProposal",
            json!({"id": "1", "approve": true, "changes": [{"index": 0, "content": "The parcel is late."}]}),
        ),
        ("decideProposal", json!({"id": "1", "reject": true})),
        ("revertProposal", json!({"id": "2"})),
    ]
}

pub fn erased_nothing() -> Value {
    serde_json::to_value(store::erased::Erased::default()).unwrap()
}

pub fn about_the_agent() -> Bodies {
    vec![
        ("configureAgent", json!({"model": "demo"})),
        ("getConfig", json!({})),
        ("applyRetention", json!({"dryRun": true})),
        (
            "applyRetention",
            json!({"dryRun": true, "sessionId": "s", "retention": {"eventsDays": 30}}),
        ),
        ("getStats", json!({})),
        ("verify", json!({})),
        ("loadForeignRows", json!({})),
        ("findMentions", json!({"query": "parcel"})),
        (
            "erase",
            json!({"places": [
                {"kind": "event", "sessionId": "s", "id": "b1"},
                {"kind": "entry", "sessionId": "s", "label": "kb", "key": "k"}
            ]}),
        ),
        (
            "erase",
            json!({"places": [
                {"kind": "document", "label": "skills", "key": "k"},
                {"kind": "session", "sessionId": "t"}
            ]}),
        ),
        (
            "verifyReceipt",
            json!({"receipt": {"erased": erased_nothing(), "agent": "alice", "operation": "erase", "at": 1, "digest": "0"}}),
        ),
        ("backup", json!({"to": "r2", "keep": 7})),
        ("listBackups", json!({})),
        (
            "restoreBackup",
            json!({"key": BACKUP, "allowSources": true}),
        ),
        ("getBookmark", json!({"at": 1_767_225_600_000_i64})),
        (
            "restoreBookmark",
            json!({"bookmark": "state-1767225600000", "confirm": "alice"}),
        ),
        ("mintToken", json!({"expiresIn": 60})),
        ("listAgents", json!({"prefix": "user:42:", "limit": 10})),
        (
            "searchAgents",
            json!({"prefix": "user:42:", "query": "window seat"}),
        ),
        (
            "eraseAgents",
            json!({"prefix": "user:42:", "confirm": "user:42:"}),
        ),
        ("destroy", json!({"confirm": "alice"})),
    ]
}
