//! Backups: the file in the bucket is the export, it is complete or absent, and the newest are
//! retained.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use serde_json::{Value, json};

use crate::Alice;
use api::jobs::{back_up_if_due, is_backup_due as is_due};
use base::host::Host as _;
use base::outbound::Endpoint;
use base::testing::archive::MemoryArchive;
use base::testing::wait_for;
use lifecycle::transfer::PAGE_BYTES;
use lifecycle::transfer::cpu::RENEW_BYTES;
use store::backup_plan::find_progress;

const MIB: usize = 1 << 20;

/// An agent with about 12 MiB of messages and a bucket.
fn large() -> Alice {
    let alice = Alice::with_session();
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    let events: Vec<Value> = (0..6)
        .map(|_| json!({"action": "user_message", "content": "x".repeat(MIB / 3)}))
        .collect();
    for _ in 0..6 {
        let body = json!({"sessionId": "s", "events": events});
        alice.ok("appendEvents", body);
    }
    alice
}

#[test]
fn a_backup_is_the_export_in_equal_parts() {
    let alice = large();
    let before = alice.db.dump();
    let written = alice.ok("backup", json!({}));
    let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
    let key = written["key"].as_str().unwrap();
    assert!(
        key.starts_with("alice/") && key.ends_with(".ndjson"),
        "{key}"
    );
    let file = backup_bucket.objects.borrow()[key].clone();
    assert!(file == alice.export_agent().into_bytes());
    assert_eq!(written["bytes"], json!(file.len()));
    assert_eq!(
        (&written["sessions"], &written["deleted"]),
        (&json!(1), &json!(0))
    );
    let parts = backup_bucket.parts.borrow().clone();
    let (last, others) = parts.split_last().unwrap();
    assert!(others.len() >= 2 && others.iter().all(|part| *part == 5 * MIB));
    assert!(*last <= 5 * MIB);
    assert!(alice.db.dump() == before, "a backup writes no row");
    let bob = Alice::default();
    bob.import_agent(&String::from_utf8(file).unwrap()).unwrap();
    assert!(bob.export_agent() == alice.export_agent());
}

/// How often the agent requested its own settings.
fn renewals(alice: &Alice) -> usize {
    let calls = alice.outbound.calls.borrow();
    let own = calls.iter().filter(|call| {
        matches!(&call.endpoint, Endpoint::Agent { name, operation } if name == "alice" && operation == "getConfig")
    });
    own.count()
}

/// The platform grants CPU time for each request that an object receives. A large agent's backup,
/// and its restore, continue over as many requests as they need, even if these fail.
#[test]
fn backups_and_restores_renew_their_cpu_allowance() {
    let alice = large();
    let written = alice.ok("backup", json!({}));
    let bytes = usize::try_from(written["bytes"].as_u64().unwrap()).unwrap();
    let expected = bytes / (RENEW_BYTES + PAGE_BYTES)..=bytes / RENEW_BYTES;
    assert!(*expected.start() >= 2);
    assert!(expected.contains(&renewals(&alice)), "{}", renewals(&alice));

    let key = written["key"].clone();
    let file =
        alice.outbound.backup_bucket.get().unwrap().objects.borrow()[key.as_str().unwrap()].clone();
    let other = Alice::default();
    let backup_bucket = other
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    backup_bucket
        .objects
        .borrow_mut()
        .insert(key.as_str().unwrap().to_owned(), file);
    other.ok("restoreBackup", json!({"key": key}));
    assert_eq!(renewals(&other), bytes / RENEW_BYTES);

    let small = Alice::with_session();
    small
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    small.ok("backup", json!({}));
    assert_eq!(renewals(&small), 0);
}

#[test]
fn a_failed_backup_leaves_no_object_and_keeps_older_backups() {
    let alice = large();
    alice.ok("backup", json!({}));
    let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
    let parts = backup_bucket.parts.borrow().len();
    for after in 0..parts {
        backup_bucket.parts.borrow_mut().clear();
        *backup_bucket.fails_after.borrow_mut() = Some(after);
        alice.host.advance(1000);
        let error = alice.call("backup", json!({"keep": 1})).unwrap_err();
        assert_eq!(error.code.name(), "storage_failed");
        assert_eq!(backup_bucket.objects.borrow().len(), 1);
        assert_eq!(*backup_bucket.aborted.borrow(), after + 1);
    }
}

#[test]
fn the_newest_backups_are_kept() {
    let alice = Alice::with_session();
    let backup_bucket = alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    for other in [
        "alice/notes.txt",
        "alice2/000000000000001.ndjson",
        "bob/000000000000001.ndjson",
    ] {
        backup_bucket
            .objects
            .borrow_mut()
            .insert(other.to_owned(), Vec::new());
    }
    let mut keys = Vec::new();
    for _ in 0..5 {
        alice.host.advance(1000);
        let written = alice.ok("backup", json!({"keep": 3}));
        keys.push(written["key"].as_str().unwrap().to_owned());
    }
    let listed = alice.ok("listBackups", json!({}));
    let listed = listed["backups"].as_array().unwrap().clone();
    let listed: Vec<&str> = listed
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    let newest: Vec<&str> = keys.iter().rev().take(3).map(String::as_str).collect();
    assert_eq!(listed, newest);
    assert_eq!(
        backup_bucket.objects.borrow().len(),
        3 + 3,
        "other agents' objects are kept"
    );
}

/// A bucket lists a thousand keys at once, the oldest first.
#[test]
fn beyond_a_thousand_backups_the_oldest_are_deleted() {
    let alice = Alice::with_session();
    let backup_bucket = alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    for at in 1..=1_500 {
        let key = format!("alice/{at:015}.ndjson");
        backup_bucket.objects.borrow_mut().insert(key, Vec::new());
    }
    let written = alice.ok("backup", json!({}));
    let listed = alice.ok("listBackups", json!({}));
    let listed = listed["backups"].as_array().unwrap();
    assert_eq!(listed.len(), 1_000);
    assert_eq!(listed[0]["key"], written["key"]);
    assert_eq!(listed[999]["at"], 502);
    alice.host.advance(1000);
    let written = alice.ok("backup", json!({"keep": 1000}));
    assert_eq!(written["deleted"], 502);
    assert_eq!(backup_bucket.objects.borrow().len(), 1_000);
}

#[test]
fn without_a_bucket_the_error_names_the_binding() {
    let alice = Alice::with_session();
    for (operation, body) in [
        ("backup", json!({})),
        ("listBackups", json!({})),
        ("restoreBackup", json!({"key": "a/000000000000001.ndjson"})),
    ] {
        let error = alice.call(operation, body).unwrap_err();
        assert_eq!(error.code.name(), "not_configured");
        assert_eq!(error.details()["binding"], "BACKUP_BUCKET");
    }
}

#[test]
fn a_backup_restores_into_an_empty_agent_repeatably() {
    let alice = large();
    alice.ok("configureAgent", json!({"maxSteps": 3}));
    let key = alice.ok("backup", json!({}))["key"].clone();
    let before = alice.export_agent();
    let bob = Alice::default();
    let file = alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .clone();
    *bob.outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default)
        .objects
        .borrow_mut() = file;
    for imported in [1, 0] {
        let restored = bob.ok("restoreBackup", json!({"key": key}));
        assert_eq!(
            (&restored["sessions"], &restored["imported"]),
            (&json!(1), &json!(imported))
        );
        assert!(bob.export_agent() == before);
    }
    let other = Alice::with_session();
    *other
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default)
        .objects
        .borrow_mut() = alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .clone();
    assert_eq!(
        other.refused("restoreBackup", json!({"key": key})),
        "already_exists"
    );
}

/// Both agents contain only sessions, so only the sessions distinguish them.
#[test]
fn a_backup_is_not_restored_over_another_agents_sessions() {
    let alice = Alice::with_session();
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    let key = alice.ok("backup", json!({}))["key"].clone();
    let other = Alice::default();
    let backup_bucket = other
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    *backup_bucket.objects.borrow_mut() = alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .clone();
    other.ok("createSession", json!({"id": "others"}));
    let before = other.db.dump();
    let error = other
        .call("restoreBackup", json!({"key": key}))
        .unwrap_err();
    assert_eq!(error.code.name(), "already_exists");
    assert!(
        error.message.contains("sessions that are not in the file"),
        "{}",
        error.message
    );
    assert!(other.db.dump() == before);
}

#[test]
fn an_unknown_backup_key_is_refused() {
    let bob = Alice::default();
    let backup_bucket = bob
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    let foreign = "private/notes.txt".to_owned();
    backup_bucket
        .objects
        .borrow_mut()
        .insert(foreign, b"{}".to_vec());
    let before = bob.db.dump();
    for key in [
        "private/notes.txt",
        "alice/000000000000001.ndjson",
        "000000000000001.ndjson",
        "/000000000000001.ndjson",
        "a/b/000000000000001.ndjson",
        "",
    ] {
        let error = bob.call("restoreBackup", json!({"key": key})).unwrap_err();
        assert_eq!(error.code.name(), "invalid_request", "{key}");
        assert_eq!(error.details()["field"], "key", "{key}");
    }
    assert!(bob.db.dump() == before);
}

#[test]
fn an_interrupted_restore_is_completed_by_the_same_call() {
    let alice = large();
    alice.ok("createSession", json!({"id": "t"}));
    let key = alice.ok("backup", json!({}))["key"].clone();
    let file =
        alice.outbound.backup_bucket.get().unwrap().objects.borrow()[key.as_str().unwrap()].clone();
    let bob = Alice::default();
    let backup_bucket = bob
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    for length in (0..file.len()).step_by(5 * MIB / 4) {
        let part = file[..length].to_vec();
        backup_bucket
            .objects
            .borrow_mut()
            .insert(key.as_str().unwrap().to_owned(), part);
        assert_eq!(
            bob.refused("restoreBackup", json!({"key": key})),
            "invalid_request"
        );
    }
    backup_bucket
        .objects
        .borrow_mut()
        .insert(key.as_str().unwrap().to_owned(), file);
    bob.ok("restoreBackup", json!({"key": key}));
    assert!(bob.export_agent() == alice.export_agent());
}

const HOUR: i64 = 3_600_000;

/// Runs the alarm. Returns when it is due again.
fn alarm(alice: &Alice) -> Option<i64> {
    let agent = alice.agent(&alice.db);
    wait_for(back_up_if_due(&agent)).unwrap()
}

fn keys(alice: &Alice) -> usize {
    alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .len()
}

#[test]
fn an_agent_without_a_schedule_has_no_row_or_job() {
    let alice = Alice::with_session();
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    let before = alice.db.dump();
    assert!(!is_due(&alice.agent(&alice.db)).unwrap());
    assert_eq!(alarm(&alice), None);
    assert!(alice.db.dump() == before);
    assert_eq!(alice.ok("listBackups", json!({}))["nextAt"], Value::Null);
}

#[test]
fn a_schedule_backs_up_when_due_and_keeps_the_newest() {
    let alice = Alice::with_session();
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    let started_ms = alice.host.now_ms();
    alice.ok(
        "configureAgent",
        json!({"backups": {"everyHours": 6, "keep": 2}}),
    );
    assert!(is_due(&alice.agent(&alice.db)).unwrap());
    assert_eq!(alarm(&alice), Some(started_ms + 6 * HOUR));
    assert_eq!(keys(&alice), 1);
    // Another alarm fires before the next one is due.
    alice.host.advance(HOUR);
    assert!(!is_due(&alice.agent(&alice.db)).unwrap());
    assert_eq!(alarm(&alice), Some(started_ms + 6 * HOUR));
    assert_eq!(keys(&alice), 1);
    for _ in 0..3 {
        alice.host.advance(6 * HOUR);
        assert_eq!(alarm(&alice), Some(alice.host.now_ms() + 6 * HOUR));
    }
    assert_eq!(keys(&alice), 2);
    let listed = alice.ok("listBackups", json!({}));
    assert_eq!(listed["nextAt"], alice.host.now_ms() + 6 * HOUR);
    assert_eq!(listed["failure"], Value::Null);
    // The schedule is removed: the next alarm deletes its row.
    alice.ok("configureAgent", json!({"backups": {}}));
    assert_eq!(alarm(&alice), None);
    assert_eq!(find_progress(&alice.db).unwrap(), None);
    assert_eq!(keys(&alice), 2);
}

#[test]
fn a_failing_bucket_is_retried_after_an_hour_and_reported() {
    let alice = large();
    alice.ok("configureAgent", json!({"backups": {"everyHours": 24}}));
    let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
    *backup_bucket.fails_after.borrow_mut() = Some(0);
    let now = alice.host.now_ms();
    assert_eq!(alarm(&alice), Some(now + HOUR));
    let listed = alice.ok("listBackups", json!({}));
    assert_eq!(listed["nextAt"], now + HOUR);
    assert!(listed["failure"].as_str().unwrap().contains("bucket"));
    *backup_bucket.fails_after.borrow_mut() = None;
    alice.host.advance(HOUR);
    assert_eq!(alarm(&alice), Some(now + 25 * HOUR));
    assert_eq!(keys(&alice), 1);
    assert_eq!(alice.ok("listBackups", json!({}))["failure"], Value::Null);
}

#[test]
fn a_backup_is_retried_after_a_crash() {
    let alice = large();
    alice.ok("configureAgent", json!({"backups": {"everyHours": 24}}));
    let now = alice.host.now_ms();
    {
        // The future is dropped at its first await, as in an eviction.
        let agent = alice.agent(&alice.db);
        let mut backup = pin!(back_up_if_due(&agent));
        let backup_bucket = alice.outbound.backup_bucket.get().unwrap();
        backup_bucket.waits.set(true);
        let mut context = Context::from_waker(Waker::noop());
        assert!(backup.as_mut().poll(&mut context).is_pending());
        backup_bucket.waits.set(false);
    }
    assert_eq!(keys(&alice), 0);
    assert_eq!(
        find_progress(&alice.db).unwrap().unwrap().next_at,
        now + HOUR
    );
    alice.host.advance(HOUR);
    assert_eq!(alarm(&alice), Some(now + 25 * HOUR));
    assert_eq!(keys(&alice), 1);
}

#[test]
fn a_partly_restored_agent_is_not_backed_up() {
    let alice = Alice::with_session();
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    alice.ok("configureAgent", json!({"backups": {"everyHours": 6}}));
    let key = alice.ok("backup", json!({}))["key"].clone();
    let bob = Alice::default();
    *bob.outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default)
        .objects
        .borrow_mut() = alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .clone();
    bob.ok("restoreBackup", json!({"key": key}));
    assert!(!is_due(&bob.agent(&bob.db)).unwrap());
    assert_eq!(alarm(&bob), Some(bob.host.now_ms() + 6 * HOUR));
    assert_eq!(keys(&bob), 1);
    bob.host.advance(6 * HOUR);
    alarm(&bob);
    assert_eq!(keys(&bob), 2);
}

#[test]
fn a_deployed_schedule_waits_before_a_new_agents_first_backup() {
    let alice = Alice::default();
    let defaults = json!({"backups": {"everyHours": 2}}).to_string();
    alice
        .outbound
        .settings
        .borrow_mut()
        .insert("AGENT_DEFAULTS".to_owned(), defaults);
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    alice.ok("createSession", json!({"id": "s"}));
    let started_ms = alice.host.now_ms();
    assert!(is_due(&alice.agent(&alice.db)).unwrap());
    assert_eq!(alarm(&alice), Some(started_ms + 2 * HOUR));
    assert_eq!(keys(&alice), 0);
    alice.host.advance(2 * HOUR);
    assert_eq!(alarm(&alice), Some(started_ms + 4 * HOUR));
    assert_eq!(keys(&alice), 1);
}
