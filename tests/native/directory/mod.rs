//! The directory of agents, from the perspective of agents and of callers. The shards and the
//! agents are real.

use serde_json::{Value, json};

use crate::memory::agents::Cluster;
use base::columns::find_value;
use base::database::Database as _;
use base::error::Code;
use base::testing::{Dice, wait_for};
use directory::ListedAgent;
use directory::list::{AgentPage, list_agents};

fn cluster(names: &[&'static str]) -> Cluster {
    let cluster = Cluster::of(names);
    cluster
        .script
        .bindings
        .borrow_mut()
        .push("DIRECTORY".to_owned());
    cluster
}

/// A town whose agents are all listed in the directory.
fn listed(names: &[&'static str]) -> Cluster {
    let cluster = cluster(names);
    for name in names {
        assert_eq!(wait_for(cluster.member(name).join()), Ok(None));
    }
    cluster
}

fn page(cluster: &Cluster, prefix: &str, after: &str, limit: usize) -> AgentPage {
    wait_for(list_agents(cluster, prefix, after, limit)).unwrap()
}

fn names(agents: &[ListedAgent]) -> Vec<String> {
    agents.iter().map(|agent| agent.name.clone()).collect()
}

/// All agents with this prefix, read in pages of this size.
fn all(cluster: &Cluster, prefix: &str, limit: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = page(cluster, prefix, &after, limit);
        assert!(page.agents.len() <= limit);
        found.extend(names(&page.agents));
        match page.cursor {
            Some(cursor) => after = cursor,
            None => return found,
        }
    }
}

#[test]
fn a_page_is_a_slice_of_the_sorted_list() {
    const NAMES: [&str; 16] = [
        "user",
        "user-x",
        "user:",
        "user:1",
        "user:10:a",
        "user:2",
        "userA",
        "a",
        "a:",
        "a:b:c",
        "b",
        "zebra:1",
        "ä:1",
        "ä",
        "user:1:z",
        "\u{10ffff}",
    ];
    let mut dice = Dice(7);
    for _ in 0..20 {
        let some: Vec<&'static str> = NAMES.into_iter().filter(|_| dice.roll(3) > 0).collect();
        let cluster = listed(&some);
        for prefix in [
            "", "u", "user", "user:", "user:1", "a", "ä:", "nobody", "nobody:",
        ] {
            let mut sorted: Vec<String> = some
                .iter()
                .filter(|name| name.starts_with(prefix))
                .map(|name| (*name).to_owned())
                .collect();
            sorted.sort();
            for limit in [1, 2, 3, 100] {
                assert_eq!(
                    all(&cluster, prefix, limit),
                    sorted,
                    "{prefix} by {limit}: {some:?}"
                );
            }
        }
    }
}

#[test]
fn an_unchanged_check_writes_nothing() {
    let cluster = listed(&["user:1"]);
    let part = cluster.part("part:user:");
    let before = part.dump();
    assert_eq!(wait_for(cluster.member("user:1").join()), Ok(None));
    assert_eq!(part.dump(), before);
}

#[test]
fn an_unacknowledged_registration_is_retried() {
    let cluster = cluster(&["user:1"]);
    cluster.are_parts_silent.set(true);
    assert!(wait_for(cluster.member("user:1").join()).is_err());
    cluster.are_parts_silent.set(false);
    assert_eq!(all(&cluster, "", 10), Vec::<String>::new());
    assert_eq!(wait_for(cluster.member("user:1").join()), Ok(None));
    assert_eq!(all(&cluster, "", 10), ["user:1"]);
}

#[test]
fn an_agent_that_left_is_in_no_shard_and_a_new_one_is_listed() {
    let cluster = listed(&["user:1", "plain"]);
    for name in ["user:1", "plain"] {
        wait_for(cluster.member(name).leave()).unwrap();
    }
    assert!(!cluster.part("part:user:").dump().contains("user"));
    assert!(!cluster.part("parts").dump().contains("plain"));
    assert_eq!(all(&cluster, "", 10), Vec::<String>::new());
    // The agent was not destroyed: after a while it registers again.
    assert!(matches!(wait_for(cluster.member("user:1").join()), Ok(Some(ms)) if ms > 0));
    cluster.host.advance(60_000);
    assert_eq!(wait_for(cluster.member("user:1").join()), Ok(None));
    assert_eq!(all(&cluster, "", 10), ["user:1"]);
}

#[test]
fn a_stale_name_without_an_agent_is_removed_when_erased() {
    let cluster = listed(&["user:1"]);
    let sql = "DELETE FROM cf_agents_config WHERE key = 'directory'";
    cluster.member("user:1").db.run(sql, &[]).unwrap();
    cluster.ok("user:1", "destroy", json!({"confirm": "user:1"}));
    assert_eq!(all(&cluster, "", 10), Vec::<String>::new());
}

#[test]
fn without_the_directorys_answer_nothing_is_destroyed() {
    let cluster = listed(&["user:1"]);
    cluster.ok("user:1", "createSession", json!({"id": "s"}));
    cluster.are_parts_silent.set(true);
    let error = cluster
        .call("user:1", "destroy", json!({"confirm": "user:1"}))
        .unwrap_err();
    assert_eq!(error.code, Code::StorageFailed);
    assert!(
        error.message.contains("nothing was destroyed"),
        "{}",
        error.message
    );
    cluster.are_parts_silent.set(false);
    assert_eq!(
        cluster.ok("user:1", "getSession", json!({"sessionId": "s"}))["id"],
        "s"
    );
    assert_eq!(wait_for(cluster.member("user:1").join()), Ok(None));
    assert_eq!(all(&cluster, "", 10), ["user:1"]);
}

#[test]
fn an_empty_shard_is_reported_later_if_the_first_report_fails() {
    use directory::part::DirectoryPart;
    let cluster = listed(&["user:1"]);
    let db = cluster.part("part:user:");
    let part = DirectoryPart {
        name: "part:user:",
        db: db.as_ref(),
        host: &cluster.host,
        outbound: &cluster,
    };
    let sql = "SELECT life FROM cf_agents_directory WHERE name = 'user:1'";
    let lifetime: Option<String> = find_value(db.as_ref(), sql, &[]).unwrap();
    cluster.are_parts_silent.set(true);
    let left = json!({"do": "leave", "name": "user:1", "life": lifetime}).to_string();
    wait_for(part.answer(left.as_bytes())).unwrap();
    // The shard's alarm informs the root.
    assert_eq!(part.has_unreported_change(), Ok(true));
    assert_eq!(wait_for(part.wake()), Ok(true));
    cluster.are_parts_silent.set(false);
    assert_eq!(wait_for(part.wake()), Ok(false));
    assert!(!cluster.part("parts").dump().contains("user:"));
}

#[test]
fn a_late_message_of_an_earlier_lifetime_is_ignored() {
    let cluster = listed(&["user:1"]);
    let left = json!({"do": "leave", "name": "user:1", "life": "l-another"}).to_string();
    wait_for(cluster.send_to_shard("part:user:", &left)).unwrap();
    assert_eq!(all(&cluster, "", 10), ["user:1"]);
}

#[test]
fn a_read_of_an_unused_shard_creates_no_table() {
    let cluster = cluster(&["a"]);
    assert_eq!(all(&cluster, "user:", 10), Vec::<String>::new());
    assert_eq!(cluster.part("part:user:").dump(), "");
}

/// Prefixes that no agent has, in an unused directory and in one that
/// has agents: each of the three operations has an empty result.
#[test]
fn a_prefix_without_agents_has_an_empty_result() {
    let odd = [
        ":",
        "::",
        "a:",
        "..:",
        "%2F",
        "%2F:",
        "/",
        "?:",
        "#:",
        "\0",
        "\0:",
        " ",
        "'",
        "\\:",
        "ä:",
        "\u{10ffff}",
        "\u{10ffff}:",
        "👩\u{200d}👧:",
        "part:",
        "parts",
        "user:1:nobody",
    ];
    let long = [199, 200, 201, 10_000].into_iter();
    let long = long.flat_map(|chars| ["x".repeat(chars), format!("{}:", "👧".repeat(chars))]);
    let mut dice = Dice(12);
    let drawn = (0..60).map(|at| {
        let letters = (0..dice.roll(6) + 2).map(|_| char::from_u32(dice.roll(0x500) as u32 + 1));
        let text: String = letters.map(Option::unwrap).collect();
        text + if at % 2 == 0 { ":" } else { "" }
    });
    let prefixes: Vec<String> = odd
        .map(str::to_owned)
        .into_iter()
        .chain(long)
        .chain(drawn)
        .collect();
    let mut request_count = 0;
    for prefix in &prefixes {
        for cluster in [cluster(&["asked"]), listed(&["asked", "user:1", "zebra"])] {
            for cursor in ["", "user:1", "zebra:", "nobody:x"] {
                let page = cluster.ok(
                    "asked",
                    "listAgents",
                    json!({"prefix": prefix, "cursor": cursor}),
                );
                assert_eq!(
                    page,
                    json!({"agents": [], "cursor": null}),
                    "{prefix:?} {cursor:?}"
                );
            }
            let found = cluster.ok(
                "asked",
                "searchAgents",
                json!({"prefix": prefix, "query": "x"}),
            );
            for field in ["agents", "results", "failed"] {
                assert_eq!(found[field], json!([]), "{prefix:?}");
            }
            let input = json!({"prefix": prefix, "confirm": prefix, "homes": [prefix, "nobody"]});
            let erased = cluster.ok("asked", "eraseAgents", input);
            for field in ["agents", "failed", "homesLeft"] {
                assert_eq!(erased[field], json!([]), "{prefix:?}");
            }
            assert_eq!(erased["receipt"]["agents"]["count"], 0);
            request_count += 6;
        }
    }
    println!("{request_count} requests");
}

#[test]
fn an_invalid_cursor_is_refused() {
    let cluster = listed(&["a", "b"]);
    let long = "x".repeat(202);
    let error = cluster
        .call("a", "listAgents", json!({"cursor": long}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "cursor");
    let page = cluster.ok("a", "listAgents", json!({"cursor": &long[1..]}));
    assert_eq!(page["agents"], json!([]));
}

#[test]
fn a_page_reads_only_its_rows_among_a_million_agents() {
    let cluster = listed(&["user:0"]);
    let part = cluster.part("part:user:");
    part.run(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000)
         INSERT INTO cf_agents_directory (name, life, created_at)
         SELECT printf('user:%07d:x', n), 'l', 0 FROM numbers",
        &[],
    )
    .unwrap();
    part.take_costs();
    let page = page(&cluster, "user:0500", "", 100);
    assert_eq!(page.agents.len(), 100);
    assert_eq!(page.agents[0].name, "user:0500000:x");
    assert_eq!(page.agents[99].name, "user:0500099:x");
    let (reads, _) = part.take_costs();
    assert!(reads < 400, "{reads} rows of a million");
}

#[test]
fn a_search_covers_only_agents_with_the_prefix() {
    let cluster = listed(&["user:1:a", "user:1:b", "user:2:a"]);
    for name in ["user:1:a", "user:1:b", "user:2:a"] {
        cluster.ok(name, "createSession", json!({"id": "s"}));
        let event =
            json!({"action": "user_message", "content": format!("The window seat of {name}.")});
        cluster.ok(
            name,
            "appendEvents",
            json!({"sessionId": "s", "events": [event]}),
        );
    }
    let input = json!({"prefix": "user:1:", "query": "window"});
    let found = cluster.ok("user:2:a", "searchAgents", input);
    assert_eq!(found["agents"], json!(["user:1:a", "user:1:b"]));
    let results = found["results"].as_array().unwrap();
    let mut agents: Vec<&str> = results
        .iter()
        .map(|hit| hit["agent"].as_str().unwrap())
        .collect();
    agents.sort_unstable();
    assert_eq!(agents, ["user:1:a", "user:1:b"]);
    assert_eq!(found["more"], false);
    assert_eq!(found["failed"], json!([]));
    for (input, field) in [
        (json!({"prefix": "", "query": "x"}), "prefix"),
        (json!({"prefix": "user:"}), "query"),
    ] {
        let error = cluster.call("user:2:a", "searchAgents", input).unwrap_err();
        assert_eq!(error.details()["field"], field);
    }
}

#[test]
fn erasing_a_user_deletes_all_agents_and_their_shared_backend() {
    let cluster = listed(&["user:42", "user:42:a", "user:42:b", "user:420", "operator"]);
    for name in ["user:42", "user:42:a", "user:42:b", "user:420"] {
        cluster.ok(name, "createSession", json!({"id": "s"}));
    }
    let refused = cluster
        .call(
            "operator",
            "eraseAgents",
            json!({"prefix": "user:42:", "confirm": "user:42"}),
        )
        .unwrap_err();
    assert_eq!(refused.details()["field"], "confirm");
    let erased = cluster.ok(
        "operator",
        "eraseAgents",
        json!({"prefix": "user:42:", "confirm": "user:42:"}),
    );
    let agents = erased["agents"].as_array().unwrap();
    let deleted: Vec<&str> = agents
        .iter()
        .map(|one| one["agent"].as_str().unwrap())
        .collect();
    assert_eq!(deleted, ["user:42:a", "user:42:b", "user:42"]);
    for receipt in agents {
        assert_eq!(receipt["erased"]["sessions"], 1);
        assert!(receipt["digest"].is_string() && receipt["signature"].is_string());
    }
    assert_eq!(erased["failed"], json!([]));
    assert_eq!(erased["more"], false);
    let receipt = &erased["receipt"];
    assert_eq!(receipt["erased"]["sessions"], 3);
    assert_eq!(
        receipt["agents"],
        json!({"prefix": "user:42:", "count": 3, "homes": ["user:42"]})
    );
    let checked = cluster.ok("operator", "verifyReceipt", json!({"receipt": receipt}));
    assert_eq!(checked, json!({"valid": true, "signed": true}));
    assert_eq!(all(&cluster, "", 10), ["operator", "user:420"]);
    assert_eq!(
        cluster.ok("user:420", "getSession", json!({"sessionId": "s"}))["id"],
        "s"
    );
}

#[test]
fn erasing_in_several_requests_ends_with_one_receipt() {
    let numbered = (0..40).map(|n| &*format!("user:7:{n:02}").leak());
    let names: Vec<&'static str> = numbered.chain(["user:7", "operator"]).collect();
    let cluster = listed(&names);
    for name in names {
        cluster.ok(name, "createSession", json!({"id": "s"}));
    }
    let mut body = json!({"prefix": "user:7:", "confirm": "user:7:"});
    let first = cluster.ok("operator", "eraseAgents", body.clone());
    assert_eq!(first["more"], true);
    assert_eq!(first["agents"].as_array().unwrap().len(), 32);
    // The backend is kept as long as one of the agents may still use it.
    assert!(all(&cluster, "", 50).contains(&"user:7".to_owned()));
    // A changed receipt, or one of other agents, is refused.
    for (wrong, prefix) in [(json!(99), "user:7:"), (json!(32), "user:")] {
        let mut forged = first["receipt"].clone();
        forged["agents"]["count"] = wrong;
        let input = json!({"prefix": prefix, "confirm": prefix, "receipt": forged});
        let error = cluster.call("operator", "eraseAgents", input).unwrap_err();
        assert_eq!(error.details()["field"], "receipt");
    }
    body["receipt"] = first["receipt"].clone();
    let last = cluster.ok("operator", "eraseAgents", body);
    assert_eq!(last["more"], false);
    assert_eq!(last["receipt"]["agents"]["count"], 41);
    assert_eq!(last["receipt"]["erased"]["sessions"], 41);
    assert_eq!(all(&cluster, "", 50), ["operator"]);
}

#[test]
fn backends_of_other_names_are_reported_and_deleted_only_if_named() {
    let cluster = listed(&["coder:9:a", "team:9", "person:9", "operator"]);
    for (label, home) in [("team", "team:9"), ("person", "person:{2}")] {
        let block = json!({"label": label, "kind": "writable", "source": {"agent": home}});
        cluster.ok("coder:9:a", "defineBlock", block);
    }
    for name in ["team:9", "person:9"] {
        cluster.ok(name, "createSession", json!({"id": "s"}));
    }
    let erased = cluster.ok(
        "operator",
        "eraseAgents",
        json!({"prefix": "coder:9:", "confirm": "coder:9:", "homes": ["person:9", "nobody"]}),
    );
    assert_eq!(erased["homesLeft"], json!(["team:9"]));
    assert_eq!(erased["receipt"]["agents"]["homes"], json!(["person:9"]));
    assert_eq!(all(&cluster, "", 10), ["operator", "team:9"]);
}

#[test]
fn the_agent_that_erases_may_be_erased_itself() {
    let cluster = listed(&["user:42:a", "user:42:b"]);
    let erased = cluster.ok(
        "user:42:a",
        "eraseAgents",
        json!({"prefix": "user:42:", "confirm": "user:42:"}),
    );
    assert_eq!(erased["agents"][1]["agent"], "user:42:a");
    assert_eq!(all(&cluster, "", 10), Vec::<String>::new());
}

#[test]
fn without_the_binding_the_directory_is_not_configured() {
    let cluster = Cluster::of(&["a"]);
    for (operation, input) in [
        ("listAgents", json!({})),
        ("searchAgents", json!({"prefix": "a", "query": "x"})),
        ("eraseAgents", json!({"prefix": "a", "confirm": "a"})),
    ] {
        let error = cluster.call("a", operation, input).unwrap_err();
        assert_eq!(error.code, Code::NotConfigured, "{operation}");
        assert_eq!(error.details()["binding"], Value::from("DIRECTORY"));
    }
    cluster.ok("a", "destroy", json!({"confirm": "a"}));
}
