//! Runs each future in its own microtasks.
//!
//! The executor of `wasm-bindgen-futures` keeps one queue per wasm instance, which the
//! Worker and all of its objects share. There, a future waits for the queue before its
//! first step, and one request's steps run in another request's context. Here, a request
//! takes its first step at once, and a woken task runs in the context that woke it. So
//! no exported function is `async`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use worker::send::SendWrapper;

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    /// Calls `run(id)` in a microtask.
    #[wasm_bindgen(js_name = runSoon)]
    fn run_soon(run: &JsValue, id: u32);
}

/// A waker must be `Send`. `SendWrapper` is sound because there is one thread.
struct Task(SendWrapper<TaskState>);

struct TaskState {
    /// `None` while the future is polled, and after its end.
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
    /// The function of every microtask. It takes a task's id.
    static RUN: Closure<dyn FnMut(u32)> = Closure::new(run_queued);
}

/// Starts the future at once. The promise settles with the future's result.
pub fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    begin(future, Task::poll)
}

/// As [`promise`], but starts the future after the running code ends.
pub fn promise_later(future: impl Future<Output = ()> + 'static) -> Promise {
    let future = async move {
        future.await;
        Ok(JsValue::UNDEFINED)
    };
    begin(future, Task::wake)
}

/// Runs a future that awaits nothing, and returns its result. `None`: it would have to wait, and is
/// dropped.
pub fn run_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// Starts a future that nobody awaits, after the running code ends.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    Task::of(future).wake();
}

/// A task that can be dropped before its end.
pub struct CancellableTask(Arc<Task>);

impl CancellableTask {
    /// Drops the task's future, with everything that it owns. A future that is running continues.
    pub fn cancel(&self) {
        let future = self.0.0.future.borrow_mut().take();
        drop(future);
    }
}

/// As [`spawn`], for a future that may be dropped before its end. Nothing of the runtime waits for
/// it, so the object may sleep while the future waits.
pub fn start_cancellable(future: impl Future<Output = ()> + 'static) -> CancellableTask {
    let task = Task::of(future);
    Arc::clone(&task).wake();
    CancellableTask(task)
}

/// How a promise settles. A future that ends at once is over before there is a promise.
#[derive(Default)]
struct Settling {
    outcome: RefCell<Option<Result<JsValue, JsValue>>>,
    functions: RefCell<Option<(Function, Function)>>,
}

impl Settling {
    fn settle(&self, outcome: Result<JsValue, JsValue>) {
        let Some((resolve, reject)) = self.functions.take() else {
            self.outcome.replace(Some(outcome));
            return;
        };
        let (settle, value) = match outcome {
            Ok(value) => (resolve, value),
            Err(value) => (reject, value),
        };
        // Neither function throws.
        let _ = settle.call1(&JsValue::UNDEFINED, &value);
    }
}

fn begin(
    future: impl Future<Output = Result<JsValue, JsValue>> + 'static,
    start: fn(Arc<Task>),
) -> Promise {
    let settling = Rc::new(Settling::default());
    let end = Rc::clone(&settling);
    // The future starts outside the promise's constructor: the constructor would turn a crash into
    // a rejection and continue in a dead instance.
    start(Task::of(async move { end.settle(future.await) }));
    match settling.outcome.take() {
        Some(Ok(value)) => Promise::resolve(&value),
        Some(Err(value)) => Promise::reject(&value),
        None => Promise::new(&mut |resolve, reject| {
            settling.functions.replace(Some((resolve, reject)));
        }),
    }
}

impl Task {
    fn of(future: impl Future<Output = ()> + 'static) -> Arc<Self> {
        Arc::new(Self(SendWrapper(TaskState {
            future: RefCell::new(Some(Box::pin(future))),
            is_queued: Cell::new(false),
        })))
    }

    fn poll(self: Arc<Self>) {
        let claimed = self.0.future.borrow_mut().take();
        let Some(mut future) = claimed else {
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
        RUN.with(|run| run_soon(run.as_ref(), id));
    }
}

fn run_queued(id: u32) {
    let task = QUEUED.with_borrow_mut(|queued| queued.tasks.remove(&id));
    if let Some(task) = task {
        task.0.is_queued.set(false);
        task.poll();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[test]
    fn a_ready_future_runs_immediately() {
        assert_eq!(run_now(ready(7)), Some(7));
        assert_eq!(run_now(async { ready(1).await + ready(2).await }), Some(3));
        assert_eq!(run_now(pending::<()>()), None);
    }

    #[test]
    fn a_pending_future_is_dropped() {
        let counted = Rc::new(());
        let captured = Rc::clone(&counted);
        let waits = async move {
            pending::<()>().await;
            drop(captured);
        };
        assert_eq!(run_now(waits), None);
        assert_eq!(Rc::strong_count(&counted), 1);
    }
}
