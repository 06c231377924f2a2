//! The state of one request while it is handled: its trace, which its body may name, and
//! the messages that are sent before its answer.

use std::cell::RefCell;
use std::rc::Rc;

use api::mcp::Outbox;
use base::trace::Trace;

/// A request that is being handled.
pub struct Traced {
    trace: RefCell<Option<Rc<Trace>>>,
    /// `None`: nothing is sent before the answer.
    pub outbox: Option<Rc<Outbox>>,
}

impl Traced {
    pub fn new(outbox: Option<Rc<Outbox>>) -> Self {
        Self {
            trace: RefCell::default(),
            outbox,
        }
    }

    pub fn get(&self) -> Option<Rc<Trace>> {
        self.trace.borrow().clone()
    }

    pub fn set(&self, trace: Option<Rc<Trace>>) {
        self.trace.replace(trace);
    }
}
