//! The background jobs of the table: when each is due, which alarm is set, and the state after an
//! eviction or a failure.

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::callbacks::ok;
use crate::shared::turns::{text_answer, user};
use api::jobs::{JOBS, Plan, plan, run, wake};
use api::operation::Agent;
use base::background::{CHECK_AFTER_MS, JobKind, SHORT_DELAY_MS};
use base::database::Database;
use base::host::Host as _;
use base::outbound::CallFailure;
use base::testing::archive::MemoryArchive;
use base::testing::{Failing, cut_off, wait_for};
use chat::run::cycle;
use store::retention_progress::find_progress;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// An agent with the settings of all jobs and without pending work.
fn idle() -> Alice {
    let alice = Alice::learner(json!({}));
    alice
        .outbound
        .backup_bucket
        .get_or_init(MemoryArchive::default);
    alice.ok(
        "configureAgent",
        json!({"onTurnEnd": {"url": "https://tools.example/ended"}}),
    );
    alice
}

fn is_of(kind: JobKind) -> impl Fn(&api::jobs::Job) -> bool {
    move |job| job.kind == kind
}

/// Creates work for the job.
fn give_work(alice: &Alice, kind: JobKind) {
    match kind {
        JobKind::Turns => drop(alice.begin(&json!({"id": "t", "message": user("hi")}))),
        JobKind::Callbacks => {
            alice.outbound.answer(text_answer("Hello."));
            alice.chat(json!({"id": "c", "message": user("hi")}));
            alice.outbound.answer(Err(CallFailure::Unreachable {
                cause: "away".to_owned(),
            }));
            wait_for(run(&alice.agent(&alice.db), kind));
        }
        JobKind::Learning => alice.append(json!([{"action": "user_message", "content": "figs"}])),
        JobKind::Vectors => {
            let model = ("EMBEDDING_MODEL".to_owned(), "workers-ai:@cf/m".to_owned());
            alice.outbound.settings.borrow_mut().extend([model]);
            let entry = json!({"label": "facts", "key": "k", "content": "figs"});
            alice.ok("setEntry", entry);
        }
        JobKind::Index => {
            append_many(alice, 9_000);
            assert_eq!(alice.ok("search", json!({"query": "1"}))["pending"], true);
        }
        JobKind::Retention => {
            alice.ok(
                "configureAgent",
                json!({"retention": {"sessionsIdleDays": 1}}),
            );
            // The first run finds nothing.
            wait_for(wake(&alice.agent(&alice.db)));
            alice.ok("createSession", json!({"id": "old"}));
        }
        JobKind::Backups => {
            alice.ok("configureAgent", json!({"backups": {"everyHours": 6}}));
            wait_for(wake(&alice.agent(&alice.db)));
            assert_eq!(backups(alice), 1);
        }
    }
    alice.starter.started.take();
    alice.starter.alarm_at.take();
}

fn is_done(alice: &Alice, kind: JobKind) -> bool {
    let next = plan(&alice.agent(&alice.db), is_of(kind));
    match kind {
        JobKind::Turns => !alice.has_turn_rows(),
        JobKind::Callbacks => alice.callback_rows() == 0,
        JobKind::Learning | JobKind::Vectors | JobKind::Index => next == Plan::default(),
        JobKind::Retention => !alice.has_session("old"),
        JobKind::Backups => backups(alice) == 2,
    }
}

fn append_many(alice: &Alice, count: usize) {
    let texts: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    for texts in texts.chunks(1_000) {
        let event = |text: &String| json!({"action": "user_message", "content": text});
        alice.append(texts.iter().map(event).collect::<Vec<Value>>().into());
    }
}

fn backups(alice: &Alice) -> usize {
    alice
        .outbound
        .backup_bucket
        .get()
        .unwrap()
        .objects
        .borrow()
        .len()
}

/// The alarm fires: runs the jobs that it starts to the end.
fn fire_alarm(alice: &Alice, db: &dyn Database) {
    let agent = alice.agent(db);
    wait_for(wake(&agent));
    for kind in alice.starter.started.take() {
        answer(alice, kind);
        wait_for(run(&agent, kind));
    }
    run_turns(alice, &agent);
}

fn run_turns(alice: &Alice, agent: &Agent<'_>) {
    while let Some(work) = alice.starter.take() {
        alice.outbound.answer(text_answer("Hello."));
        wait_for(cycle::run(agent, work));
    }
}

/// The answer of the service or model that the job calls.
fn answer(alice: &Alice, kind: JobKind) {
    match kind {
        JobKind::Callbacks => alice.outbound.answer(ok()),
        JobKind::Learning => alice.model_proposes(json!([])),
        JobKind::Vectors => alice.embeds(&[[1.0, 0.0, 0.0]]),
        JobKind::Turns | JobKind::Index | JobKind::Retention | JobKind::Backups => {}
    }
}

#[test]
fn each_job_runs_at_its_due_time_and_not_before() {
    let mut wait = Vec::new();
    for job in JOBS {
        let mut alice = idle();
        give_work(&alice, job.kind);
        if job.kind == JobKind::Turns {
            alice.reactivate();
        }
        let first = plan(&alice.agent(&alice.db), is_of(job.kind));
        if first.due.is_empty() {
            wait.push(job.kind);
            let due_at = first.alarm_at.unwrap();
            alice.host.advance(due_at - alice.host.now_ms() - 1);
            fire_alarm(&alice, &alice.db);
            assert!(!is_done(&alice, job.kind), "{:?}", job.kind);
            // Jobs that are not due schedule no earlier alarm.
            let alarm_at = alice.starter.alarm_at.take();
            assert_eq!(alarm_at, Some(due_at), "{:?}", job.kind);
            alice.host.advance(1);
        }
        let now = plan(&alice.agent(&alice.db), is_of(job.kind));
        assert_eq!(now.due, [job.kind]);
        fire_alarm(&alice, &alice.db);
        assert!(is_done(&alice, job.kind), "{:?}", job.kind);
        assert_eq!(alice.starter.failures.take(), []);
    }
    use JobKind::{Backups, Callbacks, Learning, Retention};
    assert_eq!(wait, [Callbacks, Learning, Retention, Backups]);
}

#[test]
fn the_alarm_fires_for_each_job_in_order_of_due_time() {
    let alice = idle();
    let timed = [
        JobKind::Retention,
        JobKind::Backups,
        JobKind::Learning,
        JobKind::Callbacks,
    ];
    for kind in timed {
        give_work(&alice, kind);
    }
    let mut left = timed.to_vec();
    fire_alarm(&alice, &alice.db);
    while !left.is_empty() {
        let agent = alice.agent(&alice.db);
        let due_at = |kind: &JobKind| plan(&agent, is_of(*kind)).alarm_at;
        let earliest = left.iter().filter_map(due_at).min();
        let alarm_at = alice.starter.alarm_at.take().expect("an alarm is set");
        assert!(Some(alarm_at) <= earliest, "{left:?}");
        alice.host.advance(alarm_at - alice.host.now_ms());
        fire_alarm(&alice, &alice.db);
        left.retain(|kind| !is_done(&alice, *kind));
        assert!(alice.host.now_ms() < 3 * DAY);
    }
    assert_eq!(alice.starter.failures.take(), []);
}

#[test]
fn an_alarm_is_set_before_a_job_waits() {
    let alice = idle();
    give_work(&alice, JobKind::Learning);
    alice.host.advance(DAY);
    let now_ms = alice.host.now_ms();
    wait_for(wake(&alice.agent(&alice.db)));
    assert_eq!(*alice.starter.started.borrow(), [JobKind::Learning]);
    assert_eq!(alice.starter.alarm_at.get(), Some(now_ms + CHECK_AFTER_MS));
}

#[test]
fn retention_resumes_after_a_crash_between_two_steps() {
    let mut alice = idle();
    alice.ok("configureAgent", json!({"retention": {"eventsDays": 1}}));
    append_many(&alice, 3_000);
    alice.host.advance(2 * DAY);
    alice.append(json!([{"action": "user_message", "content": "young"}]));
    alice.outbound.sleeps_forever.set(true);
    let mut left = vec![count_events(&alice)];
    for _ in 0..3 {
        cut_off(wake(&alice.agent(&alice.db)));
        alice.reactivate();
        left.push(count_events(&alice));
    }
    assert!(
        left.is_sorted_by(|before, after| before > after),
        "{left:?}"
    );
    alice.outbound.sleeps_forever.set(false);
    fire_alarm(&alice, &alice.db);
    assert_eq!(count_events(&alice), 1);
    let progress = find_progress(&alice.db).unwrap().unwrap();
    assert_eq!(progress.last.unwrap().counts.events.count, 3_000);
}

fn count_events(alice: &Alice) -> i64 {
    alice.rows_in("cf_agents_events")
}

#[test]
fn an_acknowledged_callback_is_not_repeated_after_a_crash() {
    let mut alice = idle();
    give_work(&alice, JobKind::Callbacks);
    alice.host.advance(DAY);
    fire_alarm(&alice, &alice.db);
    let answer = alice.turn_end_calls().len();
    alice.reactivate();
    alice.host.advance(DAY);
    fire_alarm(&alice, &alice.db);
    assert_eq!(alice.turn_end_calls().len(), answer);
}

#[test]
fn a_long_job_yields_and_continues_by_alarm() {
    let alice = idle();
    append_many(&alice, 60_000);
    give_work(&alice, JobKind::Index);
    let (now_ms, mut rounds) = (alice.host.now_ms(), 0);
    while !is_done(&alice, JobKind::Index) {
        rounds += 1;
        alice.starter.alarm_at.take();
        wait_for(wake(&alice.agent(&alice.db)));
        if !is_done(&alice, JobKind::Index) {
            assert_eq!(alice.starter.alarm_at.get(), Some(now_ms + SHORT_DELAY_MS));
        }
    }
    assert!(rounds > 1);
}

#[test]
fn a_failed_job_is_retried_and_blocks_no_other() {
    // The keys under which the jobs' progress is stored. Retention also reads the index's progress:
    // the words of an expired session are removed from the index.
    for (key, failing, also_fails) in [
        ("search", JobKind::Index, Some(JobKind::Retention)),
        ("retention", JobKind::Retention, None),
        ("backups", JobKind::Backups, None),
    ] {
        let alice = idle();
        // An embedding model would consume the other models' scripted answers.
        let without = [JobKind::Turns, JobKind::Vectors, JobKind::Index];
        for job in JOBS.iter().filter(|job| !without.contains(&job.kind)) {
            give_work(&alice, job.kind);
        }
        // The alarms above would have built the index.
        give_work(&alice, JobKind::Index);
        alice.host.advance(3 * DAY);
        // This session is in use.
        alice.append_texts(&["figs"]);
        let broken = Failing::with(&alice.db, key);
        fire_alarm(&alice, &broken);
        assert!(broken.has_failed());
        assert!(!alice.starter.failures.take().is_empty());
        for job in JOBS {
            if job.kind == JobKind::Learning {
                // Recent messages are processed later.
                let next = plan(&alice.agent(&alice.db), is_of(job.kind));
                assert_eq!(next.due, []);
                continue;
            }
            let is_others = job.kind != failing && Some(job.kind) != also_fails;
            assert_eq!(
                is_done(&alice, job.kind),
                is_others,
                "{key}: {:?}",
                job.kind
            );
        }
        let mut alarms = 0;
        while !is_done(&alice, failing) {
            alarms += 1;
            assert!(alarms < 9, "{failing:?}");
            alice.host.advance(HOUR);
            fire_alarm(&alice, &alice.db);
        }
    }
}
