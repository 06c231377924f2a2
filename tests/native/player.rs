//! Three agents for `tests/player/`: each input line is a request as JSON, and each output line an
//! answer. The player has one model of the contract, in JavaScript, for these agents and for those
//! in workerd. It can make a statement fail, interrupt a turn, and set the clock.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::Alice;
use api::dispatch::{dispatch, follow_up};
use api::operation::Reply;
use api::transfer::begin_import;
use base::database::Database;
use base::error::Error;
use base::outbound::CallFailure;
use base::testing::{Failing, ScriptedAnswer};
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;
use conversation::index::build::build_batch;
use store::schema;

/// How many agents there are.
const AGENTS: usize = 3;

/// Begins each line for the player. Other lines are the test runner's.
const MARK: &str = "@player@";

/// The maximum rounds in which interrupted turns are resumed.
const MAX_ROUNDS: usize = 20;

/// The two directions of communication with the player.
struct Wire {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
}

impl Wire {
    fn write_line(&mut self, line: &Value) {
        writeln!(self.output, "{MARK}{line}").unwrap();
        self.output.flush().unwrap();
    }

    /// The next line; `None`: the player has exited.
    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.input.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }
}

/// An agent that requests its model's text from the player.
fn agent(number: usize, wire: &Rc<RefCell<Wire>>) -> Alice {
    let mut alice = Alice::with_model();
    alice.host.stir(number as u64);
    let wire = Rc::clone(wire);
    alice.outbound.replies = Some(Box::new(move |call| {
        let body: Value = serde_json::from_str(&call.body).unwrap();
        let mut wire = wire.borrow_mut();
        wire.write_line(&json!({"ask": body}));
        let answer = wire.receive()?;
        Some(match answer["stream"].as_str() {
            Some(text) => Ok(ScriptedAnswer::stream(text)),
            None => match answer["json"].is_null() {
                false => ScriptedAnswer::json(&answer["json"]),
                true if answer["silent"] == true => return None,
                true => Err(CallFailure::Unreachable {
                    cause: "the player said so".to_owned(),
                }),
            },
        })
    }));
    alice
}

fn serve(input: Box<dyn BufRead>, output: Box<dyn Write>) {
    let wire = Rc::new(RefCell::new(Wire { input, output }));
    let new_agents = || -> Vec<Alice> { (0..AGENTS).map(|number| agent(number, &wire)).collect() };
    let mut agents = new_agents();
    wire.borrow_mut().write_line(&json!({"ready": true}));
    loop {
        let Some(request) = wire.borrow_mut().receive() else {
            return;
        };
        let answer = if request["reset"] == true {
            agents = new_agents();
            json!({})
        } else if let Some(ms) = request["advance"].as_i64() {
            agents.iter().for_each(|alice| alice.host.advance(ms));
            json!({})
        } else {
            let number = request["agent"].as_u64().unwrap() as usize;
            agents[number].answer_player(&request)
        };
        wire.borrow_mut().write_line(&answer);
    }
}

impl Alice {
    fn answer_player(&mut self, request: &Value) -> Value {
        self.outbound.calls.borrow_mut().clear();
        if request["evict"] == true {
            self.crash();
            self.wake();
            return json!({});
        }
        let answer = match request["fault"].as_u64() {
            Some(passing) => {
                let failing = Failing::after(&self.db, passing as usize);
                let answer = self.act(&failing, request);
                let has_failed = failing.has_failed();
                answer.map(|(status, body)| (status, body, has_failed))
            }
            None => {
                let answer = self.act(&self.db, request);
                answer.map(|(status, body)| (status, body, false))
            }
        };
        let Some((status, body, has_failed)) = answer else {
            self.crash();
            self.wake();
            return json!({"status": 0});
        };
        if request["operation"] == "destroy" && status == 200 {
            schema::migrate(&self.db, &self.host).unwrap();
            self.crash();
        }
        json!({"status": status, "body": body, "failed": has_failed})
    }

    /// The status and the answer; `None`: the object was evicted during the request.
    fn act(&self, db: &dyn Database, request: &Value) -> Option<(u16, Value)> {
        let text = |field: &str| request[field].as_str().map(str::to_owned);
        let answer = if let Some(session_id) = text("export") {
            self.export(&session_id).map(Value::from)
        } else if let Some(session_id) = text("import") {
            let file = text("file").unwrap();
            let piece = request["piece"].as_u64().unwrap_or(50_000) as usize;
            self.import_for_player(db, &session_id, &file, piece)
        } else {
            let operation = text("operation").unwrap();
            let body = request["body"].to_string();
            self.drive(db, &operation, &body)?
        };
        Some(match answer {
            Ok(body) => (200, body),
            Err(error) => (error.code.status(), error_body(&error)),
        })
    }

    fn import_for_player(
        &self,
        db: &dyn Database,
        session_id: &str,
        file: &str,
        piece: usize,
    ) -> Result<Value, Error> {
        let agent = self.agent(db);
        let mut import = begin_import(&agent, session_id.to_owned(), true)?;
        for piece in file.as_bytes().chunks(piece) {
            import.push(db, &self.host, piece)?;
        }
        Ok(json!(import.finish(db, &self.host)?))
    }

    /// Runs an operation, its follow-up work, and the turns that it starts. `None`: all of it waits
    /// for an answer that never arrives.
    fn drive(
        &self,
        db: &dyn Database,
        operation: &str,
        body: &str,
    ) -> Option<Result<Value, Error>> {
        let agent = self.agent(db);
        let reply = match self.poll_to_end(db, Box::pin(dispatch(&agent, operation, body)))? {
            Ok(reply) => reply,
            Err(error) => return Some(Err(error)),
        };
        let Reply {
            body,
            grown,
            indexing_continues,
            ..
        } = reply;
        // The work after an answer doesn't change it, and may fail.
        if let Some(grown) = grown {
            let _ = self.poll_to_end(db, Box::pin(follow_up(&agent, &grown)))?;
        }
        while indexing_continues && build_batch(db).unwrap_or(false) {}
        Some(Ok(serde_json::from_str(&body.into_string()).unwrap()))
    }

    fn poll_to_end<'a, T>(
        &'a self,
        db: &'a dyn Database,
        mut future: Pin<Box<dyn Future<Output = T> + 'a>>,
    ) -> Option<T> {
        let agent = self.agent(db);
        let agent = &agent;
        let mut works: Vec<Pin<Box<dyn Future<Output = _> + '_>>> = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut answer = None;
        loop {
            let mut has_moved = false;
            if answer.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(&mut context)
            {
                answer = Some(value);
                has_moved = true;
            }
            while let Some(work) = self.starter.take() {
                works.push(Box::pin(run(agent, work)));
                has_moved = true;
            }
            works.retain_mut(|work| {
                let is_over = work.as_mut().poll(&mut context).is_ready();
                has_moved |= is_over;
                !is_over
            });
            if works.is_empty() && answer.is_some() {
                return answer;
            }
            if !has_moved {
                return None;
            }
        }
    }

    /// The work of an alarm in the object's next activation.
    fn wake(&self) {
        for _ in 0..MAX_ROUNDS {
            let works = resume_some_turns(&self.agent(&self.db)).works;
            if works.is_empty() {
                break;
            }
            for work in works {
                let agent = self.agent(&self.db);
                let future = async { drop(run(&agent, work).await) };
                let _ = self.poll_to_end(&self.db, Box::pin(future));
            }
        }
    }
}

fn error_body(error: &Error) -> Value {
    json!({"code": error.code.name(), "message": error.message, "details": error.details(),
           "cause": error.cause})
}

/// With `PLAYER` set, plays with the process that started the test. Otherwise plays two
/// requests, as the player would.
#[test]
fn the_random_player_is_served() {
    if std::env::var_os("PLAYER").is_some() {
        return serve(Box::new(BufReader::new(stdin())), Box::new(stdout()));
    }
    let lines = concat!(
        r#"{"agent":1,"operation":"createSession","body":{"id":"s"}}"#,
        "\n",
        r#"{"agent":2,"operation":"getSession","body":{"sessionId":"s"}}"#,
        "\n",
    );
    let received = WrittenBytes::default();
    serve(Box::new(lines.as_bytes()), Box::new(received.clone()));
    let received = String::from_utf8(received.0.take()).unwrap();
    let answers: Vec<Value> = received
        .lines()
        .map(|line| serde_json::from_str(line.strip_prefix(MARK).unwrap()).unwrap())
        .collect();
    assert_eq!(answers[1]["body"]["id"], "s");
    assert_eq!(
        answers[2],
        json!({"status": 200, "body": null, "failed": false})
    );
}

/// The written bytes, shared with another handle.
#[derive(Clone, Default)]
struct WrittenBytes(Rc<RefCell<Vec<u8>>>);

impl Write for WrittenBytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
