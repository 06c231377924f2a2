use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::testing::{FixedHost, wait_for};
use crate::trace::Trace;
use crate::trace::ids::{SpanId, TraceId};

#[derive(Default)]
struct HolderRequests {
    calls: RefCell<Vec<LeasedCall>>,
    given_up: RefCell<Vec<u32>>,
    resumed: Cell<u32>,
    is_for_another_turn: Cell<bool>,
}

struct Holder(Rc<HolderRequests>);

impl LeaseHolder for Holder {
    fn accepts_calls(&self) -> bool {
        !self.0.is_for_another_turn.get()
    }

    fn ask(&self, call: LeasedCall) {
        self.0.calls.borrow_mut().push(call);
    }

    fn abandon(&self, number: u32) {
        self.0.given_up.borrow_mut().push(number);
    }

    fn resumed(&self) {
        self.0.resumed.set(self.0.resumed.get() + 1);
    }
}

fn lease() -> (Rc<Lease>, Rc<HolderRequests>) {
    let received = Rc::new(HolderRequests::default());
    (Lease::new(Box::new(Holder(Rc::clone(&received)))), received)
}

const LIMITS: CallLimits = CallLimits {
    wait_ms: 1,
    silence_ms: 60_000,
    no_content_ms: Some(100_000),
    total_ms: 500_000,
    max_bytes: 8,
};

fn head() -> Arrival {
    Arrival::Head(LeasedHead {
        status: 200,
        content_type: "text/event-stream".to_owned(),
        retry_after: Some(3),
    })
}

fn is_pending<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    future.as_mut().poll(&mut context).is_pending()
}

/// Reads a leased answer to its end. `None`: the object must make the call itself.
async fn read(host: &FixedHost) -> Option<Result<(u16, Vec<u8>), CallFailure>> {
    let answer = run_ai_leased("m", "{}", LIMITS, host).await?;
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return Some(Err(failure)),
    };
    let mut bytes = Vec::new();
    loop {
        match answer.body.next().await {
            Ok(Some(piece)) => bytes.extend(piece),
            Ok(None) => return Some(Ok((answer.status, bytes))),
            Err(failure) => return Some(Err(failure)),
        }
    }
}

#[test]
fn a_call_waits_for_the_lease_holder_and_reads_the_response() {
    let (host, (lease, received)) = (FixedHost::default(), lease());
    let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut reading));
    let first = received.calls.borrow()[0].clone();
    assert_eq!((first.number, first.body.as_str()), (0, "{}"));
    assert_eq!(first.limits.no_content_ms, None);
    wait_for(lease.until_idle());
    assert!(lease.arrive(0, head()));
    assert_eq!(received.resumed.get(), 1);
    assert!(lease.arrive(0, Arrival::Bytes(b"on".to_vec())));
    assert_eq!(received.resumed.get(), 1, "the turn was not waiting");
    assert!(is_pending(&mut reading));
    assert!(!lease.arrive(7, Arrival::End), "no call has this number");
    assert!(lease.arrive(0, Arrival::Bytes(b"e".to_vec())));
    assert!(lease.arrive(0, Arrival::End));
    let complete = Some(Ok((200, b"one".to_vec())));
    assert_eq!(wait_for(reading), complete);
    assert!(received.given_up.borrow().is_empty());
    assert!(!lease.arrive(0, Arrival::End), "the call is over");
}

#[test]
fn limits_apply_without_a_timer() {
    for (wait_ms, bytes, failure) in [
        (0, &b"123456789"[..], CallFailure::TooLarge { max_bytes: 8 }),
        (
            100_000,
            b"1",
            CallFailure::TimedOut {
                silence_ms: 100_000,
            },
        ),
    ] {
        let (host, (lease, received)) = (FixedHost::default(), lease());
        let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
        assert!(is_pending(&mut reading));
        lease.arrive(0, head());
        host.advance(wait_ms);
        lease.arrive(0, Arrival::Bytes(bytes.to_vec()));
        assert_eq!(wait_for(reading), Some(Err(failure)));
        assert_eq!(*received.given_up.borrow(), [0]);
    }
}

#[test]
fn dropping_a_call_cancels_it_and_frees_the_turn() {
    let (host, (lease, received)) = (FixedHost::default(), lease());
    let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut reading));
    drop(reading);
    assert_eq!(
        (received.given_up.borrow()[0], received.resumed.get()),
        (0, 1)
    );
    let mut idling = pin!(lease.until_idle());
    let mut context = Context::from_waker(Waker::noop());
    assert!(idling.as_mut().poll(&mut context).is_pending());
    lease.finish();
    assert!(idling.as_mut().poll(&mut context).is_ready());
}

#[test]
fn the_object_calls_the_model_if_the_holder_is_lost_early() {
    let (host, (lease, _)) = (FixedHost::default(), lease());
    let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut reading));
    assert_eq!(lease.end(), Loss::Nothing);
    assert_eq!(wait_for(reading), None);
    assert_eq!(wait_for(lease.run(read(&host))), None, "the lease is over");

    let (lease, _) = self::lease();
    let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut reading));
    lease.arrive(0, head());
    assert_eq!(lease.end(), Loss::Answer);
    drop(reading);

    let (lease, _) = self::lease();
    let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut reading));
    lease.arrive(0, head());
    lease.arrive(0, Arrival::End);
    assert_eq!(lease.end(), Loss::Nothing, "the whole answer is here");
    assert_eq!(wait_for(reading), Some(Ok((200, Vec::new()))));
}

#[test]
fn an_invalid_message_from_the_holder_fails_the_call() {
    for arrivals in [
        vec![Arrival::Bytes(vec![1])],
        vec![Arrival::End],
        vec![head(), head()],
    ] {
        let (host, (lease, _)) = (FixedHost::default(), lease());
        let mut reading: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
        assert!(is_pending(&mut reading));
        for arrival in arrivals {
            lease.arrive(0, arrival);
        }
        assert!(matches!(
            wait_for(reading),
            Some(Err(CallFailure::Unreachable { .. }))
        ));
    }
}

#[test]
fn the_object_makes_calls_that_the_holder_does_not_take() {
    let (host, (lease, peer)) = (FixedHost::default(), lease());
    peer.is_for_another_turn.set(true);
    assert_eq!(wait_for(lease.run(read(&host))), None);
    assert!(peer.calls.borrow().is_empty());
}

#[test]
fn only_one_leased_call_runs_at_a_time() {
    let (host, (lease, received)) = (FixedHost::default(), lease());
    let mut first: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut first));
    assert_eq!(wait_for(lease.run(read(&host))), None);
    lease.arrive(0, Arrival::Failed(CallFailure::Overloaded));
    assert_eq!(wait_for(first), Some(Err(CallFailure::Overloaded)));
    let mut second: Pin<Box<dyn Future<Output = _>>> = Box::pin(lease.run(read(&host)));
    assert!(is_pending(&mut second));
    assert_eq!(received.calls.borrow()[1].number, 1);
}

#[test]
fn run_without_hides_the_lease_from_nested_work() {
    let (host, (lease, received)) = (FixedHost::default(), lease());
    let entered = async {
        let within = Lease::run_without(async { (Lease::current().is_none(), read(&host).await) });
        (within.await, Lease::current().is_some())
    };
    assert_eq!(wait_for(lease.run(entered)), ((true, None), true));
    assert!(received.calls.borrow().is_empty());
    assert!(Lease::current().is_none());
}

#[test]
fn a_leased_call_has_a_span_like_a_direct_one() {
    let host = FixedHost::default();
    let trace = Rc::new(Trace {
        id: TraceId([1; 16]),
        span: SpanId([2; 8]),
        parent: None,
        is_sampled: true,
        state: None,
    });
    let call = OutboundRequest {
        purpose: CallPurpose::Model,
        endpoint: Endpoint::Url("https://m.example/v1".to_owned()),
        headers: vec![("authorization".to_owned(), "Bearer k".to_owned())],
        body: "{}".to_owned(),
        limits: LIMITS,
    };
    let failed = Arrival::Failed(CallFailure::Overloaded);
    for (arrival, failure) in [
        (Some(head()), None),
        (Some(failed), Some("no_answer")),
        (None, None),
    ] {
        let (queue, (lease, received)) = (SpanQueue::default(), lease());
        let sending = async {
            let sent = send_leased(RequestForm::Json, &call, Some(&queue), &host).await;
            sent.is_some()
        };
        let mut sending: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(trace::run_in(Some(Rc::clone(&trace)), lease.run(sending)));
        assert!(is_pending(&mut sending));
        host.advance(7);
        let is_answered = arrival.is_some();
        match arrival {
            Some(arrival) => assert!(lease.arrive(0, arrival)),
            None => assert_eq!(lease.end(), Loss::Nothing),
        }
        assert_eq!(wait_for(sending), is_answered);
        let spans = queue.take_batch();
        let Some(span) = spans.first() else {
            assert!(!is_answered, "the object makes the call, and its span");
            continue;
        };
        assert_eq!((spans.len(), span.name.as_str()), (1, "POST"));
        assert_eq!(span.parent, Some(trace.span));
        assert_eq!(span.ended_at_ms - span.started_at_ms, 7);
        let code = span.failure.as_ref().map(|(code, _)| code.as_str());
        assert_eq!(code, failure);
        let LeasedEndpoint::Url { headers, .. } = &received.calls.borrow()[0].endpoint else {
            panic!("a URL");
        };
        let of_span = Trace {
            span: span.id,
            ..(*trace).clone()
        };
        let (name, value) = &headers[0];
        assert_eq!(
            (name.as_str(), value),
            (trace::TRACEPARENT, &of_span.traceparent())
        );
    }
}

#[test]
fn messages_round_trip() {
    let call = LeasedCall {
        number: 4,
        endpoint: LeasedEndpoint::Url {
            url: "https://m.example/v1".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer k".to_owned())],
        },
        limits: LIMITS,
        body: "{\"a\":\"\\n\"}\nc".to_owned(),
    };
    let events = "data: {\"é\":1}\n\n".to_owned();
    for message in [
        ToHolder::Ask(call),
        ToHolder::Abandon(9),
        ToHolder::Events(events),
        ToHolder::Over,
    ] {
        let text = message.render().unwrap();
        assert_eq!(ToHolder::parse(&text).unwrap(), message);
    }
    let silence_ms = 60_000;
    for message in [
        FromHolder::Alive,
        FromHolder::Arrived(1, head()),
        FromHolder::Arrived(u32::MAX, Arrival::Bytes(vec![0, 255])),
        FromHolder::Arrived(2, Arrival::End),
        FromHolder::Arrived(3, Arrival::Failed(CallFailure::TimedOut { silence_ms })),
        FromHolder::Arrived(4, Arrival::Failed(CallFailure::Overloaded)),
    ] {
        let bytes = message.render().unwrap();
        assert_eq!(FromHolder::parse(&bytes).unwrap(), message);
    }
    for bytes in [
        &b""[..],
        b"h",
        b"h\0\0\0\0{",
        b"z\0\0\0\0",
        b"f\0\0\0\0\"?\"",
    ] {
        assert!(FromHolder::parse(bytes).is_err(), "{bytes:?}");
    }
    for text in ["", "c{}", "x?", "z"] {
        assert!(ToHolder::parse(text).is_err(), "{text}");
    }
}
