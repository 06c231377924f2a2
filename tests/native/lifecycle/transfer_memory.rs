//! A session's own memory and settings in its file. An import restores all of them or nothing. It
//! needs the permission to write them by operations.

use serde_json::{Value, json};

use crate::Alice;
use crate::lifecycle::transfer::{populated, refused, small};
use access::{Caller, TokenScope};
use api::table::OPERATIONS;
use api::transfer::begin_export;
use base::database::Database;
use base::ids::Id;
use base::tables::{ExportRule, ForkRule};
use lifecycle::tables::tables;

impl Alice {
    /// Adds settings, a block of each kind and content in each block to a session.
    pub fn remember(&self, session_id: &str) {
        let write = |operation: &str, body: Value| {
            let mut body = body;
            body["sessionId"] = json!(session_id);
            self.ok(operation, body)
        };
        write(
            "configureCompaction",
            json!({"compactAfter": null, "protectHead": 7}),
        );
        for (label, kind) in [
            ("Rules", "readonly"),
            ("İdeas", "writable"),
            ("kb", "searchable"),
            ("skills", "loadable"),
            ("gone", "writable"),
        ] {
            write(
                "defineBlock",
                json!({"label": label, "kind": kind, "description": format!("About {label}"),
                       "maxTokens": 500, "defaultContent": "So it begins.", "whenChanged": "remind"}),
            );
            self.host.advance(1);
        }
        write("setBlock", json!({"label": "gone", "content": "kept"}));
        write("removeBlock", json!({"label": "gone"}));
        for (content, reason) in [("one\n\u{2028}", Value::Null), ("two \"\\", json!("Why."))] {
            write(
                "setBlock",
                json!({"label": "İdeas", "content": content, "reason": reason}),
            );
            self.host.advance(1);
        }
        for (key, content) in [("b", "Deploying on Fridays"), ("a", "Bananas are yellow")] {
            write(
                "setEntry",
                json!({"label": "kb", "key": key, "title": "T", "content": content}),
            );
            write(
                "putSkill",
                json!({"label": "skills", "key": key, "content": content, "description": "D"}),
            );
            write("loadSkill", json!({"label": "skills", "key": key}));
            self.host.advance(1);
        }
        write("unloadSkill", json!({"label": "skills", "key": "a"}));
        write("freezePrompt", json!({}));
        write(
            "callTool",
            json!({"name": "set_context", "arguments": {"label": "İdeas", "content": "three"}}),
        );
    }

    /// All rows of the database, as text. Of the index of entries only the list of its
    /// entries is there, because the rest of the index also depends on deleted entries.
    pub fn rows(&self) -> String {
        let dump = self.db.dump();
        // The row that records which sessions existed stays when sessions are deleted.
        let lines = dump.lines().filter(|line| !line.contains("Text(\"ended "));
        let lines = lines.filter_map(|line| {
            match line.strip_prefix("cf_agents_entries_search_") {
                None => Some(line),
                // The row's number and sizes, without its write order.
                Some(kept) if kept.starts_with("docsize ") => Some(kept.rsplit_once(',')?.0),
                Some(_) => None,
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The answers of every read about the memory that [`Alice::remember`] wrote.
    pub fn read_memory(&self, session_id: &str) -> Vec<Value> {
        [
            ("getBlockVersions", json!({"label": "İdeas"})),
            ("listEntries", json!({"label": "kb"})),
            ("listSkills", json!({"label": "skills"})),
            (
                "searchContext",
                json!({"label": "kb", "query": "deployment"}),
            ),
            ("renderPrompt", json!({})),
            ("getTools", json!({})),
        ]
        .into_iter()
        .map(|(operation, mut body)| {
            body["sessionId"] = json!(session_id);
            self.ok(operation, body)
        })
        .collect()
    }
}

/// The file of a session of three messages with memory and settings.
fn file() -> String {
    let alice = small();
    alice.remember("s");
    alice.export("s").unwrap()
}

fn scoped(operations: Option<&[&str]>) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: Id::parse("s".to_owned()).ok(),
        operations: operations.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

#[test]
fn memory_is_restored_in_another_object_and_under_another_name() {
    let alice = populated();
    let file = alice.export("s").unwrap();
    let kinds: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .skip_while(|kind| *kind != "block")
        .collect();
    assert_eq!(
        json!(kinds),
        json!([
            "block", "block", "block", "block", "version", "version", "version", "version",
            "entry", "entry", "skill", "skill", "loaded", "loaded", "prompt", "end"
        ])
    );
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.export("s").unwrap(), file);
    assert_eq!(bob.read_memory("s"), alice.read_memory("s"));

    bob.import("t", &file).unwrap();
    assert_eq!(bob.read_memory("t"), alice.read_memory("s"));
    assert_eq!(bob.import("t", &file).unwrap().imported, 0);
}

#[test]
fn the_agents_memory_is_not_in_the_file() {
    let alice = small();
    alice.ok(
        "defineBlock",
        json!({"label": "soul", "kind": "readonly", "defaultContent": "agent's"}),
    );
    alice.ok("configureCompaction", json!({"protectHead": 9}));
    alice.ok("freezePrompt", json!({}));
    assert_eq!(alice.export("s").unwrap(), small().export("s").unwrap());
}

#[test]
fn a_removed_blocks_content_returns_when_it_is_redefined() {
    let bob = Alice::default();
    bob.import("s", &file()).unwrap();
    let block = bob.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "Gone", "kind": "writable"}),
    );
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("kept"), &json!(1))
    );
}

#[test]
fn a_copys_memory_continues_like_the_originals() {
    let alice = small();
    alice.remember("s");
    let bob = Alice::default();
    bob.import("s", &alice.export("s").unwrap()).unwrap();
    for each in [&alice, &bob] {
        each.ok(
            "setBlock",
            json!({"sessionId": "s", "label": "İdeas", "content": "four", "expectedVersion": 3}),
        );
        each.ok(
            "setEntry",
            json!({"sessionId": "s", "label": "kb", "key": "a", "content": "Apples"}),
        );
        each.ok(
            "deleteEntry",
            json!({"sessionId": "s", "label": "kb", "key": "b"}),
        );
        let found = each.ok(
            "searchContext",
            json!({"sessionId": "s", "label": "kb", "query": "bananas deploy apple"}),
        );
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    }
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    bob.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(bob.rows(), Alice::default().rows());
}

#[test]
fn settings_are_restored_and_compaction_outcomes_are_not() {
    let alice = small();
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "tailTokenBudget": 5}),
    );
    alice
        .db
        .run(
            "UPDATE cf_agents_sessions
                SET compaction = json_set(compaction, '$.decisions', json('[{\"at\":1,\"isAuto\":true,\"reason\":\"failed\",\"tokensBefore\":1,\"tokensAfter\":1}]'))",
            &[],
        )
        .unwrap();
    let file = alice.export("s").unwrap();
    let first: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    assert_eq!(first["compaction"], json!({"tailTokenBudget": 5}));
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    bob.ok("configureCompaction", json!({"protectHead": 4}));
    let settings = bob.ok("configureCompaction", json!({"sessionId": "s"}));
    assert_eq!(
        settings,
        json!({"compactAfter": null, "protectHead": 4, "tailTokenBudget": 5, "minTailMessages": 2})
    );
}

#[test]
fn a_session_with_another_memory_is_another_session() {
    let file = file();
    for (operation, body) in [
        ("setBlock", json!({"label": "İdeas", "content": "four"})),
        ("defineBlock", json!({"label": "Rules", "kind": "readonly"})),
        ("deleteEntry", json!({"label": "kb", "key": "a"})),
        ("deleteSkill", json!({"label": "skills", "key": "a"})),
        ("unloadSkill", json!({"label": "skills", "key": "b"})),
        ("refreshPrompt", json!({})),
        ("configureCompaction", json!({"protectHead": 8})),
    ] {
        let bob = Alice::default();
        bob.import("s", &file).unwrap();
        let mut body = body;
        body["sessionId"] = json!("s");
        bob.ok(operation, body);
        let before = bob.rows();
        assert_eq!(
            refused(bob.import("s", &file)).0,
            "already_exists",
            "{operation}"
        );
        assert_eq!(bob.rows(), before);
    }
}

#[test]
fn an_invalid_memory_line_is_named_and_nothing_is_written() {
    let file = file();
    let lines: Vec<&str> = file.lines().collect();
    let first = |kind: &str| {
        let start = format!("{{\"type\":\"{kind}\"");
        lines
            .iter()
            .position(|line| line.starts_with(&start))
            .unwrap()
    };
    let edit = |at: usize, from: &str, to: &str| {
        assert!(lines[at].contains(from), "{} {from}", lines[at]);
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[at] = lines[at].replacen(from, to, 1);
        (lines.join("\n"), at + 1)
    };
    let below = |(file, line): (String, usize)| (file, line + 1);
    let twice = |at: usize| {
        let mut lines = lines.clone();
        lines.insert(at, lines[at]);
        (lines.join("\n"), at + 2)
    };
    let moved_earlier = |at: usize, to: usize| {
        let mut lines = lines.clone();
        let line = lines.remove(at);
        lines.insert(to, line);
        (lines.join("\n"), to + 2)
    };
    let [block, version, entry, skill, loaded, prompt] =
        ["block", "version", "entry", "skill", "loaded", "prompt"].map(first);
    let table = [
        edit(0, "\"protectHead\":7", "\"protectHead\":100001"),
        edit(0, "\"protectHead\":7", "\"protectHead\":-1"),
        edit(0, "\"protectHead\":7", "\"head\":7"),
        edit(0, "\"compactAfter\":null", "\"compactAfter\":0"),
        edit(block, "Rules", "Ru/les"),
        edit(block, "readonly", "list"),
        edit(block, "\"maxTokens\":500", "\"maxTokens\":0"),
        edit(block, "About", "A\\nbout"),
        edit(block, "\"source\":null", "\"source\":{\"agent\":\"alice\"}"),
        edit(block, "\"source\":null", "\"source\":{\"r2\":\"../x\"}"),
        edit(block, "\"remind\"", "\"never\""),
        edit(block, "\"definedAt\":", "\"at\":"),
        edit(block + 2, "kb", "rules"),
        edit(version, "\"gone\"", "\"Gone\""),
        edit(version, "\"gone\"", "\"kb\""),
        edit(version, "\"version\":1", "\"version\":0"),
        edit(version, "\"version\":1", "\"version\":4294967296"),
        edit(version, "\"operation\"", "\"nobody\""),
        edit(version + 2, "\"version\":2", "\"version\":1"),
        edit(version + 2, "Why.", &"x".repeat(501)),
        edit(entry, "\"kb\"", "\"rules\""),
        below(edit(entry, "\"key\":\"a\"", "\"key\":\"c\"")),
        edit(entry, "\"key\":\"a\"", "\"key\":\"../a\""),
        edit(entry, "\"title\":\"T\"", "\"title\":\"T\\n\""),
        edit(skill, "\"skills\"", "\"kb\""),
        edit(skill, "\"key\":\"a\"", "\"key\":\"\""),
        edit(skill, "\"D\"", "\"D  D\""),
        edit(loaded, "\"label\":\"skills\"", "\"label\":\" \""),
        edit(loaded + 1, "\"key\":\"b\"", "\"key\":\"a\""),
        edit(
            prompt,
            "\"sections\":{",
            "\"sections\":{\"kb\":\"x\",\"x\":\"y\",",
        ),
        edit(prompt, "\"rules\":\"", "\"rules\":\"g"),
        twice(block),
        twice(version),
        twice(entry),
        twice(skill),
        twice(loaded),
        twice(prompt),
        moved_earlier(block, 3),
        moved_earlier(entry, version),
    ];
    let bob = Alice::default();
    let before = bob.rows();
    for (file, line) in table {
        let outcome = refused(bob.import("s", &file));
        assert_eq!(outcome, ("invalid_request", json!(line)), "{file}");
        assert_eq!(bob.rows(), before, "{file}");
    }
}

#[test]
fn an_oversized_line_is_refused_by_its_number() {
    let file = file();
    let lines: Vec<&str> = file.lines().collect();
    let of = |kind: &str| {
        let start = format!("{{\"type\":\"{kind}\"");
        *lines.iter().find(|line| line.starts_with(&start)).unwrap()
    };
    let with = |more: Vec<String>| {
        let mut all = vec![lines[0].to_owned()];
        all.extend(more);
        all.push("{\"type\":\"end\",\"events\":0,\"leafId\":null}".to_owned());
        all.join("\n")
    };
    let blocks = |count: usize| {
        let block = |n: usize| of("block").replace("Rules", &format!("b{n}"));
        with((0..count).map(block).collect())
    };
    let versions = |count: usize, content: &str| {
        let version = |n: usize| {
            of("version")
                .replace("\"version\":1", &format!("\"version\":{}", n + 1))
                .replace("kept", content)
        };
        with((0..count).map(version).collect())
    };
    let keyed = |kind: &str, count: usize| {
        let line = |n: usize| of(kind).replace("\"key\":\"a\"", &format!("\"key\":\"{n:05}\""));
        with((0..count).map(line).collect())
    };
    // The file's first line of this kind has no content.
    let loaded = |count: usize| {
        let line = of("loaded").replace("\"content\":null", "\"content\":\"c\"");
        let line = |n: usize| line.replace("\"key\":\"a\"", &format!("\"key\":\"{n:05}\""));
        with((0..count).map(line).collect())
    };
    let mib = "x".repeat(1 << 20);
    for (good, bad) in [
        (blocks(100), blocks(101)),
        (versions(50, "v"), versions(51, "v")),
        (versions(8, &mib), versions(9, &mib)),
        (keyed("entry", 10_000), keyed("entry", 10_001)),
        (keyed("skill", 1_000), keyed("skill", 1_001)),
        (loaded(32), loaded(33)),
    ] {
        let bob = Alice::default();
        let before = bob.rows();
        let line = bad.lines().count() - 1;
        assert_eq!(
            refused(bob.import("s", &bad)),
            ("invalid_request", json!(line))
        );
        assert_eq!(bob.rows(), before);
        bob.import("s", &good).unwrap();
        let again = bob.export("s").unwrap();
        assert_eq!(again.trim_end(), good, "equal to the byte");
    }
    for (kind, field, long) in [
        ("version", "kept", mib.len() + 1),
        ("entry", "Bananas", 64 << 10),
        ("skill", "Bananas", 256 << 10),
        ("prompt", "So it begins.", 1_900_000),
    ] {
        let line = of(kind).replace(field, &"x".repeat(long));
        let bob = Alice::default();
        let outcome = refused(bob.import("s", &with(vec![line])));
        assert_eq!(outcome, ("payload_too_large", json!(2)), "{kind}");
    }
    let line = of("block").replace("\"maxTokens\":500", "\"maxTokens\":1");
    let bob = Alice::default();
    let outcome = refused(bob.import("s", &with(vec![line])));
    assert_eq!(outcome, ("block_over_budget", json!(2)));
}

#[test]
fn a_blocks_backend_is_restored_only_if_the_file_is_trusted() {
    let alice = small();
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "profile", "kind": "writable", "source": {"agent": "user:42"}, "modelWrites": true}),
    );
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.export("s").unwrap(), file);
}

#[test]
fn an_export_is_complete_for_a_reader_of_everything() {
    let of_memory = tables().filter(|table| match table.fork {
        ForkRule::Copy { .. } => true,
        ForkRule::Made(_) => table.name == "cf_agents_entries",
        ForkRule::Nothing(_) => false,
    });
    let readers: Vec<&str> = of_memory
        .map(|table| match table.file {
            ExportRule::ShownBy(reader) => reader,
            _ => panic!(
                "{}: a fork copies these rows, so a file has them too: `InFile::ShownBy`",
                table.name
            ),
        })
        .collect();
    for name in &readers {
        assert!(OPERATIONS.iter().any(|entry| entry.name == *name), "{name}");
    }
    for missing in [""].iter().chain(&readers) {
        let mut may = vec!["getSession", "loadEvents"];
        may.extend(&readers);
        may.retain(|name| name != missing);
        let mut alice = small();
        alice.remember("s");
        alice.caller = scoped(Some(&may));
        match alice.export("s") {
            Ok(_) => assert_eq!(*missing, ""),
            Err(error) => assert_eq!(
                (error.code.name(), missing.is_empty()),
                ("forbidden", false)
            ),
        }
    }
}

#[test]
fn memory_changing_during_an_export_still_makes_a_valid_file() {
    let alice = small();
    alice.remember("s");
    let long = "x".repeat(600_000);
    for label in ["p", "q", "r"] {
        let block =
            json!({"sessionId": "s", "label": label, "kind": "writable", "defaultContent": long});
        alice.ok("defineBlock", block);
    }
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    let mut file = export.next_page(&alice.db).unwrap().unwrap();
    for kb in ["kb", "İdeas"] {
        alice.ok(
            "removeBlock",
            json!({"sessionId": "s", "label": kb, "purge": true}),
        );
    }
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "kb", "kind": "writable"}),
    );
    alice.ok(
        "setBlock",
        json!({"sessionId": "s", "label": "kb", "content": "text"}),
    );
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "new", "kind": "writable"}),
    );
    alice.ok(
        "setBlock",
        json!({"sessionId": "s", "label": "new", "content": "text"}),
    );
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        file.push_str(&page);
    }
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    let block = bob.ok("getBlock", json!({"sessionId": "s", "label": "kb"}));
    assert_eq!(
        (&block["kind"], &block["content"]),
        (
            &json!("searchable"),
            &json!("So it begins.\n0 entries indexed.")
        )
    );
}

#[test]
fn text_edited_during_an_export_keeps_within_the_version_limit() {
    let alice = Alice::with_session();
    let block = json!({"sessionId": "s", "label": "log", "kind": "writable"});
    alice.ok("defineBlock", block);
    let write = |n: usize| {
        let content = format!("{n} {}", "x".repeat(40_000));
        let text = json!({"sessionId": "s", "label": "log", "content": content});
        alice.ok("setBlock", text);
    };
    (0..50).for_each(write);
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    let mut file = export.next_page(&alice.db).unwrap().unwrap();
    (50..70).for_each(write);
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        file.push_str(&page);
    }
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    let block = bob.ok("getBlock", json!({"sessionId": "s", "label": "log"}));
    assert_eq!(block["version"], 50);
}

#[test]
fn a_page_of_memory_is_bounded_and_skips_nothing() {
    let alice = Alice::with_session();
    let content = "y".repeat(250_000);
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "d", "kind": "loadable"}),
    );
    for n in 0..20 {
        let block = json!({"sessionId": "s", "label": format!("b{n}"), "kind": "writable", "defaultContent": content});
        alice.ok("defineBlock", block);
        let text = json!({"sessionId": "s", "label": format!("b{}", n % 2), "content": format!("{n}{content}")});
        alice.ok("setBlock", text);
        let document =
            json!({"sessionId": "s", "label": "d", "key": n.to_string(), "content": content});
        alice.ok("putSkill", document);
        // A session can have 4 MiB of documents loaded at once.
        if n < 16 {
            let load = json!({"sessionId": "s", "label": "d", "key": n.to_string()});
            alice.ok("loadSkill", load);
        }
    }
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    let mut file = String::new();
    let mut pages = 0;
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        assert!(page.len() < (1 << 20) + 300_000);
        file.push_str(&page);
        pages += 1;
    }
    assert_eq!(pages, 16);
    assert_eq!(file.lines().count(), 1 + 21 + 20 + 20 + 16 + 1);
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.export("s").unwrap(), file);
}

#[test]
fn memory_of_a_pending_import_is_invisible_and_cleaned_up() {
    let alice = small();
    alice.remember("s");
    for n in 0..600 {
        let entry =
            json!({"sessionId": "s", "label": "kb", "key": format!("e{n}"), "content": "banana"});
        alice.ok("setEntry", entry);
    }
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    let before = bob.rows();
    let mut import =
        api::transfer::begin_import(&bob.agent(&bob.db), "s".to_owned(), false).unwrap();
    let head = file.split("{\"type\":\"end\"").next().unwrap();
    import.push(&bob.db, &bob.host, head.as_bytes()).unwrap();
    let staged = bob.db.rows("SELECT 1 FROM cf_agents_entries", &[]).unwrap();
    assert!(staged.len() > 400);
    let search = json!({"sessionId": "s", "label": "kb", "query": "banana"});
    assert_eq!(bob.refused("searchContext", search), "session_not_found");
    assert_eq!(
        bob.refused("freezePrompt", json!({"sessionId": "s"})),
        "session_not_found"
    );
    import.abandon(&bob.db).unwrap();
    assert_eq!(bob.rows(), before);
}
