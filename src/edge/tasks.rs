//! Runs futures, each in microtasks of its own.
//!
//! The executor of `wasm-bindgen-futures` keeps one queue for the whole instance of wasm,
//! which the Worker and all of its objects share. A future waits there for the queue's
//! turn before its first step, and requests run in each other's turns. Here the first step
//! of a request is made at once, and a task that is woken runs in the context that woke it.
//! So no function that is exported is `async`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use worker::send::SendWrapper;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(run: &BoundRun);

    type BoundRun;

    #[wasm_bindgen(method)]
    fn bind(this: &BoundRun, receiver: &JsValue, id: u32) -> BoundRun;
}

/// A waker has to be `Send`; there is one thread.
struct Task(SendWrapper<TaskState>);

struct TaskState {
    /// `None` while it is polled, and when it is over.
    future: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
    is_queued: Cell<bool>,
}

#[derive(Default)]
struct Queued {
    next_id: u32,
    tasks: BTreeMap<u32, Arc<Task>>,
}

thread_local! {
    static QUEUED: RefCell<Queued> = RefCell::default();
    /// Bound to the id of a task, this is the function of a microtask.
    static RUN: Closure<dyn FnMut(u32)> = Closure::new(run_queued);
}

/// Starts at once, and is a promise of what the future comes to.
pub fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    settled(future, Task::poll)
}

/// The same; starts when the running code has come to its end.
pub fn promise_later(future: impl Future<Output = ()> + 'static) -> Promise {
    let future = async move {
        future.await;
        Ok(JsValue::UNDEFINED)
    };
    settled(future, Task::wake)
}

/// Nobody waits for it. Starts when the running code has come to its end.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    Task::of(future).wake();
}

fn settled(
    future: impl Future<Output = Result<JsValue, JsValue>> + 'static,
    start: fn(Arc<Task>),
) -> Promise {
    let mut future = Some(future);
    Promise::new(&mut |resolve: Function, reject: Function| {
        let Some(future) = future.take() else {
            return;
        };
        let settled = async move {
            let (settle, value) = match future.await {
                Ok(value) => (resolve, value),
                Err(value) => (reject, value),
            };
            // Neither function throws.
            let _ = settle.call1(&JsValue::UNDEFINED, &value);
        };
        start(Task::of(settled));
    })
}

impl Task {
    fn of(future: impl Future<Output = ()> + 'static) -> Arc<Self> {
        Arc::new(Self(SendWrapper(TaskState {
            future: RefCell::new(Some(Box::pin(future))),
            is_queued: Cell::new(false),
        })))
    }

    fn poll(self: Arc<Self>) {
        let taken = self.0.future.borrow_mut().take();
        let Some(mut future) = taken else {
            return;
        };
        let waker = Waker::from(Arc::clone(&self));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            self.0.future.replace(Some(future));
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.0.is_queued.replace(true) {
            return;
        }
        let id = QUEUED.with_borrow_mut(|queued| {
            queued.next_id = queued.next_id.wrapping_add(1);
            queued.tasks.insert(queued.next_id, self);
            queued.next_id
        });
        RUN.with(|run| {
            let run: &BoundRun = run.as_ref().unchecked_ref();
            queue_microtask(&run.bind(&JsValue::UNDEFINED, id));
        });
    }
}

fn run_queued(id: u32) {
    let task = QUEUED.with_borrow_mut(|queued| queued.tasks.remove(&id));
    if let Some(task) = task {
        task.0.is_queued.set(false);
        task.poll();
    }
}
