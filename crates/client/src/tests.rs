//! The protocol without a runtime: what is sent, and how each answer is handled. The transport is a
//! list of answers, and records the requests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Action, Agent, Answer, AppendEvents, AppendMessage, Body, Code, ConfigureAgent, CreateSession,
    Error, GetChanges, GetConfig, GetHistory, GetSession, ListSessions, LoadEvents, NewEvent,
    NewMessage, Payload, Request, Retry, Search, TraceContext, UpdateSession, Wire,
};

/// Returns its answers in order.
#[derive(Default)]
struct Script {
    answers: RefCell<VecDeque<Result<Answer<Pieces>, String>>>,
    requests: RefCell<Vec<Request<Vec<u8>>>>,
    pauses: RefCell<Vec<Duration>>,
}

struct Pieces(VecDeque<Result<Vec<u8>, String>>);

impl Wire for &Script {
    type Body = Pieces;
    type Stream = Vec<u8>;

    async fn send(&self, request: &Request<Vec<u8>>) -> Result<Answer<Pieces>, String> {
        self.requests.borrow_mut().push(request.clone());
        self.answers.borrow_mut().pop_front().unwrap()
    }

    async fn wait(&self, pause: Duration) {
        self.pauses.borrow_mut().push(pause);
    }

    fn random(&self) -> f64 {
        1.0
    }
}

impl Body for Pieces {
    async fn text(mut self) -> Result<String, String> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece().await? {
            bytes.extend(piece);
        }
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }

    async fn piece(&mut self) -> Result<Option<Vec<u8>>, String> {
        self.0.pop_front().transpose()
    }
}

impl Script {
    fn of(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let script = Self::default();
        for (status, body) in answers {
            script.add(status, [Ok(body.to_string().as_str())]);
        }
        script
    }

    fn add<'a>(&self, status: u16, pieces: impl IntoIterator<Item = Result<&'a str, &'a str>>) {
        let pieces = pieces.into_iter().map(|piece| match piece {
            Ok(text) => Ok(text.as_bytes().to_vec()),
            Err(why) => Err(why.to_owned()),
        });
        self.answers.borrow_mut().push_back(Ok(Answer {
            status,
            location: Some("https://other.example/path?secret=1".to_owned()),
            body: Pieces(pieces.collect()),
        }));
    }

    fn lose(&self) {
        self.answers.borrow_mut().push_back(Err("gone".to_owned()));
    }

    fn agent(&self) -> Agent<&Self> {
        Agent::over(self, "alice").unwrap().with_token("a token")
    }

    /// The sent JSON bodies, each with the end of its URL.
    fn sent(&self) -> Vec<(String, Value)> {
        let requests = self.requests.borrow();
        let sent = requests.iter().map(|request| {
            let path = request
                .url
                .strip_prefix("https://session-agent/agents/session-agent/");
            let Payload::Json(json) = &request.payload else {
                panic!("{request:?}");
            };
            (
                path.unwrap().to_owned(),
                serde_json::from_str(json).unwrap(),
            )
        });
        sent.collect()
    }
}

/// No future here waits.
fn run<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn refusal(code: &str) -> Value {
    json!({"error": {"code": code, "message": "No.", "details": {"expectedLeafId": "a"}}})
}

const APPENDED: &str = r#"{"events": [{"id": "e", "seq": 1, "inserted": true}], "leafId": "e"}"#;

fn appended() -> Value {
    serde_json::from_str(APPENDED).unwrap()
}

#[test]
fn an_input_contains_only_the_fields_set() {
    let script = Script::of(vec![(200, appended()); 3]);
    let agent = script.agent();
    let event = || NewEvent::new(Action::UserMessage).content("Hello").id("e");
    let plain = AppendEvents::new("s", vec![event()]);
    run(agent.call(&plain)).unwrap();
    run(agent.call(&plain.clone().expected_leaf_id("a"))).unwrap();
    let mut first = plain;
    (first.expected_leaf_id, first.parent_id) = (Some(None), Some(Some("p".to_owned())));
    run(agent.call(&first)).unwrap();

    let events = json!([{"action": "user_message", "content": "Hello", "id": "e"}]);
    let path = "alice/rpc/appendEvents".to_owned();
    let expected = [
        json!({"sessionId": "s", "events": events}),
        json!({"sessionId": "s", "events": events, "expectedLeafId": "a"}),
        json!({"sessionId": "s", "events": events, "expectedLeafId": null, "parentId": "p"}),
    ];
    assert_eq!(script.sent(), expected.map(|body| (path.clone(), body)));
    let requests = script.requests.borrow();
    assert_eq!(requests[0].token.as_deref(), Some("a token"));
    assert_eq!(requests[0].payload.content_type(), Some("application/json"));
}

#[test]
fn an_operation_without_fields_sends_an_empty_object() {
    let script = Script::of([(500, Value::Null), (500, Value::Null)]);
    let agent = script.agent().with_retry(Retry::never());
    run(agent.call(&GetConfig::new())).unwrap_err();
    run(agent.call(&CreateSession::new())).unwrap_err();
    let bodies: Vec<Value> = script.sent().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [json!({}), json!({})]);
}

#[test]
fn null_clears_a_name_and_a_setting() {
    let script = Script::of([(500, Value::Null), (500, Value::Null)]);
    let agent = script.agent();
    let mut session = UpdateSession::new("s");
    session.name = Some(None);
    run(agent.call(&session)).unwrap_err();
    let mut config = ConfigureAgent::new().max_steps(3);
    config.model = Some(None);
    run(agent.call(&config)).unwrap_err();
    let bodies: Vec<Value> = script.sent().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies[0], json!({"sessionId": "s", "name": null}));
    assert_eq!(bodies[1], json!({"maxSteps": 3, "model": null}));
}

#[test]
fn unknown_fields_of_a_newer_agent_are_accepted() {
    let event = json!({
        "id": "e", "sessionId": "s", "seq": 1, "parentId": null, "action": "dreamt_of",
        "content": "x", "createdAt": 5, "color": "blue"
    });
    let script = Script::of([(200, json!([event])), (200, Value::Null)]);
    let agent = script.agent();
    let events = run(agent.call(&LoadEvents::new("s"))).unwrap();
    assert_eq!(events[0].action, Action::Unknown("dreamt_of".to_owned()));
    assert_eq!((events[0].seq, events[0].metadata.clone()), (1, None));
    let sent_again = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(sent_again["action"], "dreamt_of");
    assert_eq!(run(agent.call(&GetSession::new("s"))), Ok(None));
}

#[test]
fn a_message_can_be_sent_as_it_was_read() {
    let message = json!({
        "id": "m", "role": "user", "createdAt": "on Monday", "metadata": {"a": 1}, "mood": "good",
        "parts": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Hi"}, {"type": "x"}]
    });
    let page = json!({"messages": [message], "truncated": false, "cursor": null});
    let script = Script::of([
        (200, page),
        (200, json!({"inserted": true, "message": message})),
    ]);
    let agent = script.agent();
    let page = run(agent.call(&GetHistory::new("s"))).unwrap();
    let read = page.messages.into_iter().next().unwrap();
    assert_eq!(read.text(), "Hi");
    run(agent.call(&AppendMessage::new("t", read))).unwrap();
    assert_eq!(
        script.sent()[1].1,
        json!({"sessionId": "t", "message": message})
    );
}

#[test]
fn an_error_has_its_code_status_and_details() {
    let script = Script::of([(409, refusal("leaf_moved")), (418, refusal("tea_only"))]);
    let agent = script.agent();
    let append = AppendEvents::new("s", vec![NewEvent::new(Action::UserMessage).id("e")]);
    let error = run(agent.call(&append.expected_leaf_id("a"))).unwrap_err();
    assert!(error.is(&Code::LeafMoved));
    let refused = error.refusal().unwrap();
    assert_eq!(
        (refused.status, refused.operation.as_str()),
        (409, "appendEvents")
    );
    assert_eq!(refused.details["expectedLeafId"], "a");
    assert_eq!(error.to_string(), "No. (leaf_moved)");

    let newer = run(agent.call(&ListSessions::new())).unwrap_err();
    assert_eq!(newer.code(), Some(&Code::Unknown("tea_only".to_owned())));
    assert_eq!(script.requests.borrow().len(), 2);
}

#[test]
fn only_idempotent_calls_are_retried() {
    let event = |id: Option<&str>| {
        let event = NewEvent::new(Action::UserMessage);
        id.map_or(event.clone(), |id| event.id(id))
    };
    let append = |ids: [Option<&str>; 2]| AppendEvents::new("s", ids.map(event).into());
    let tries = |work: &dyn Fn(&Script) -> Result<(), Error>| {
        let script = Script::default();
        script.lose();
        script.add(200, [Err("cut")]);
        script.add(
            503,
            [Ok(
                r#"{"error": {"code": "storage_failed", "message": "No."}}"#,
            )],
        );
        script.add(200, [Ok(APPENDED)]);
        let outcome = work(&script);
        let tried = script.requests.borrow().len();
        assert_eq!(script.pauses.borrow().len(), tried - 1);
        assert_eq!(outcome.is_ok(), tried == 4, "{outcome:?}");
        tried
    };
    let both = append([Some("a"), Some("b")]);
    let one = append([Some("a"), None]);
    assert_eq!(
        tries(&|script| run(script.agent().call(&both)).map(drop)),
        4
    );
    assert_eq!(tries(&|script| run(script.agent().call(&one)).map(drop)), 1);
    assert_eq!(
        tries(&|script| run(script.agent().call(&CreateSession::new())).map(drop)),
        1
    );
    let by_name = |script: &Script| {
        let agent = script.agent();
        run(agent.call_by_name::<Value>("appendEvents", &both)).map(drop)
    };
    assert_eq!(tries(&by_name), 1);
    let message = NewMessage::user("Hi");
    assert!(!crate::Operation::is_repeatable(&AppendMessage::new(
        "s",
        message.clone()
    )));
    assert!(crate::Operation::is_repeatable(&AppendMessage::new(
        "s",
        message.id("m")
    )));
}

#[test]
fn an_unrecognized_answer_is_reported_and_a_redirect_is_not_followed() {
    let script = Script::default();
    script.add(404, [Ok("<html>")]);
    script.add(307, [Ok("")]);
    script.add(200, [Ok("<html>")]);
    let agent = script.agent();
    let ask = || run(agent.call(&ListSessions::new())).unwrap_err();
    let strange = ask();
    assert!(
        strange
            .to_string()
            .contains("status 404, but not by a Session Agent: <html>")
    );
    let Error::Unreached {
        message, status, ..
    } = ask()
    else {
        panic!("a redirect was followed");
    };
    assert_eq!(status, Some(307));
    assert!(
        message.contains("redirect to https://other.example, which"),
        "{message}"
    );
    assert!(matches!(ask(), Error::Unreadable { .. }));
    assert_eq!(script.requests.borrow().len(), 3);
}

#[test]
fn no_log_contains_a_token() {
    let script = Script::of([(200, json!([]))]);
    let agent = script.agent();
    run(agent.call(&LoadEvents::new("s"))).unwrap();
    let shown = format!("{agent:?} {:?}", script.requests.borrow());
    assert!(shown.contains("/agents/session-agent/alice"), "{shown}");
    assert!(!shown.contains("token"), "{shown}");
}

#[test]
fn an_invalid_name_sends_nothing() {
    let script = Script::default();
    for name in ["", ".", ".."] {
        assert!(matches!(
            Agent::over(&script, name),
            Err(Error::Invalid { .. })
        ));
    }
    let agent = script.agent();
    let escaped = run(agent.call_by_name::<Value>("../../bob/rpc/listSessions", &json!({})));
    assert!(matches!(escaped, Err(Error::Invalid { .. })));
    assert!(matches!(
        run(agent.export_session("..")),
        Err(Error::Invalid { .. })
    ));
    assert!(script.requests.borrow().is_empty());
}

fn session(id: &str) -> Value {
    json!({
        "id": id, "agentId": "alice", "name": null, "parentSessionId": null, "createdAt": 1,
        "updatedAt": 1, "metadata": null, "usage": {"inputTokens": 0, "outputTokens": 0, "cost": 0}
    })
}

#[test]
fn items_of_all_pages_are_streamed() {
    let page = |ids: &[&str], cursor: Option<&str>| {
        let sessions: Vec<Value> = ids.iter().map(|id| session(id)).collect();
        (200, json!({"sessions": sessions, "cursor": cursor}))
    };
    let script = Script::of([
        page(&["a", "b"], Some("1")),
        page(&[], Some("2")),
        page(&["c"], None),
    ]);
    let agent = script.agent();
    let mut sessions = agent.items(ListSessions::new().limit(2));
    let mut ids = Vec::new();
    while let Some(session) = run(sessions.next()).unwrap() {
        ids.push(session.id);
    }
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(run(sessions.next()), Ok(None));
    assert_eq!(script.sent()[2].1, json!({"limit": 2, "cursor": "2"}));
}

#[test]
fn items_continue_after_a_failed_page() {
    let script = Script::default();
    script.add(403, [Ok(refusal("forbidden").to_string().as_str())]);
    script.add(200, [Ok(r#"{"sessions": [], "cursor": null}"#)]);
    let agent = script.agent();
    let mut sessions = agent.items(ListSessions::new());
    assert!(run(sessions.next()).unwrap_err().is(&Code::Forbidden));
    assert_eq!(run(sessions.next()), Ok(None));
}

#[test]
fn events_are_paged_until_a_page_is_empty() {
    let event = |seq: i64| {
        json!({
            "id": format!("e{seq}"), "sessionId": "s", "seq": seq, "parentId": null,
            "action": "user_message", "content": "x", "createdAt": 5
        })
    };
    let script = Script::of([(200, json!([event(1), event(4)])), (200, json!([]))]);
    let agent = script.agent();
    let mut events = agent.items(LoadEvents::new("s").tail(true));
    let mut seqs = Vec::new();
    while let Some(event) = run(events.next()).unwrap() {
        seqs.push(event.seq);
    }
    assert_eq!(seqs, [1, 4]);
    let bodies: Vec<Value> = script.sent().into_iter().map(|(_, body)| body).collect();
    assert_eq!(
        bodies[0],
        json!({"sessionId": "s", "afterSeq": 0, "limit": 500})
    );
    assert_eq!(bodies[1]["afterSeq"], 4);
}

#[test]
fn a_history_is_read_from_newest_to_oldest() {
    let message = |id: &str| json!({"id": id, "role": "user", "parts": [], "createdAt": 1});
    let page = |ids: [&str; 2], cursor: Option<&str>| {
        let messages = ids.map(message);
        (
            200,
            json!({"messages": messages, "truncated": cursor.is_some(), "cursor": cursor}),
        )
    };
    let script = Script::of([page(["c", "d"], Some("above")), page(["a", "b"], None)]);
    let agent = script.agent();
    let mut messages = agent.items(GetHistory::new("s"));
    let mut ids = Vec::new();
    while let Some(message) = run(messages.next()).unwrap() {
        ids.push(message.id);
    }
    assert_eq!(ids, ["d", "c", "b", "a"]);
    assert_eq!(
        script.sent()[1].1,
        json!({"sessionId": "s", "before": "above"})
    );
}

#[test]
fn changes_end_at_the_newest_or_wait_for_more() {
    let page = |cursors: &[i64], cursor: i64| {
        let changes: Vec<Value> = cursors
            .iter()
            .map(|cursor| json!({"cursor": cursor, "type": "append", "id": "m"}))
            .collect();
        (200, json!({"changes": changes, "cursor": cursor}))
    };
    let script = Script::of([page(&[1, 2], 2), page(&[], 2), page(&[], 2), page(&[3], 3)]);
    let agent = script.agent();
    let mut changes = agent.items(GetChanges::new("s"));
    assert_eq!(run(changes.next()).unwrap().unwrap().cursor, 1);
    assert_eq!(run(changes.next()).unwrap().unwrap().cursor, 2);
    assert_eq!(run(changes.next()), Ok(None));
    assert_eq!(*script.pauses.borrow(), []);
    let mut followed = agent
        .items(GetChanges::new("s").since(2))
        .follow(Duration::from_secs(1));
    assert_eq!(run(followed.next()).unwrap().unwrap().cursor, 3);
    assert_eq!(*script.pauses.borrow(), [Duration::from_secs(1)]);
}

#[test]
fn an_export_yields_lines_however_the_body_is_split() {
    let export = concat!(
        "{\"type\":\"session\"}\n",
        "{\"type\":\"event\",\"content\":\"é\"}\n",
        "{\"type\":\"end\"}\n"
    );
    for file in [export, export.trim_end()] {
        for at in 0..=file.len() {
            let Some((one, other)) = file.split_at_checked(at) else {
                continue;
            };
            let script = Script::default();
            script.add(200, [Ok(one), Ok(other)]);
            let agent = script.agent();
            let mut lines = run(agent.export_session("a/b")).unwrap().into_lines();
            let mut types = Vec::new();
            while let Some(line) = run(lines.next()).unwrap() {
                types.push(line["type"].clone());
            }
            assert_eq!(types, ["session", "event", "end"], "{at}");
            let url = script.requests.borrow()[0].url.clone();
            assert!(url.ends_with("/alice/sessions/a%2Fb/export"), "{url}");
        }
    }
}

#[test]
fn a_truncated_export_ends_with_an_error() {
    let broken = |pieces: Vec<Result<&str, &str>>| {
        let script = Script::default();
        script.add(200, pieces);
        let agent = script.agent();
        let mut export = run(agent.export_session("s")).unwrap();
        loop {
            match run(export.piece()) {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => {
                    assert!(run(export.piece()).is_err(), "it is still not whole");
                    return Some(error);
                }
            }
        }
    };
    assert_eq!(broken(vec![Ok("{\"type\":\"end\"}\n")]), None);
    let cut = broken(vec![Ok("{\"type\":\"session\"}\n{\"type\":\"en")]).unwrap();
    assert!(cut.to_string().contains("truncated"), "{cut}");
    let lost = broken(vec![Ok("{\"type\":\"session\"}\n"), Err("gone")]).unwrap();
    assert!(lost.to_string().contains("gone"), "{lost}");
    let line = r#"{"type":"error","error":{"code":"corrupt_row","message":"A row is damaged."}}"#;
    assert!(broken(vec![Ok(line)]).unwrap().is(&Code::CorruptRow));
}

#[test]
fn an_import_sends_the_file_once() {
    let imported = json!({"sessionId": "s", "events": 2, "imported": 2, "skipped": 0});
    let script = Script::of([(200, imported.clone()), (200, imported)]);
    script.lose();
    let agent = script.agent();
    assert_eq!(
        run(agent.import_session("s").file("{}")).unwrap().imported,
        2
    );
    let stream = agent.import_session("s").allow_sources().stream(vec![1]);
    assert_eq!(run(stream).unwrap().events, 2);
    assert!(run(agent.import_session("s").file("{}")).is_err());
    let requests = script.requests.borrow();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].payload, Payload::File(b"{}".to_vec()));
    assert!(requests[0].url.ends_with("/alice/sessions/s/import"));
    assert!(
        requests[1]
            .url
            .ends_with("/alice/sessions/s/import?allowSources=true")
    );
    assert_eq!(
        requests[1].payload.content_type(),
        Some("application/x-ndjson")
    );
}

#[test]
fn highlights_have_their_positions() {
    let hit = json!({
        "sessionId": "s", "sessionName": null, "id": "m", "role": "user", "action": "user_message",
        "seq": 1, "createdAt": 5, "snippet": "Penguins swim.", "score": 1.5, "highlights": [[0, 8]]
    });
    let script = Script::of([(200, json!({"results": [hit]}))]);
    let found = run(script.agent().call(&Search::new().query("penguin"))).unwrap();
    assert_eq!(found.results[0].highlights, [[0, 8]]);
}

#[test]
fn calls_carry_a_trace_and_a_clone_carries_its_own() {
    let script = Script::of(vec![(200, json!({"sessions": [], "cursor": null})); 3]);
    let trace = |parent: &str| TraceContext {
        traceparent: parent.to_owned(),
        tracestate: Some("vendor=1".to_owned()),
    };
    let agent = script.agent();
    run(agent.call(&ListSessions::new())).unwrap();
    let traced = agent.with_trace(trace("00-a"));
    let own = traced.clone().with_trace(trace("00-b"));
    run(own.call(&ListSessions::new())).unwrap();
    run(traced.call(&ListSessions::new())).unwrap();
    let requests = script.requests.borrow();
    let traces: Vec<_> = requests
        .iter()
        .map(|request| request.trace.clone())
        .collect();
    assert_eq!(traces, [None, Some(trace("00-b")), Some(trace("00-a"))]);
}
