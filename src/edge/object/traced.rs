//! The trace of one request. It may be known only when the request's body was read.

use std::cell::RefCell;
use std::rc::Rc;

use base::trace::Trace;

/// The trace of a request that is being answered, as far as it is known.
#[derive(Default)]
pub struct Traced(RefCell<Option<Rc<Trace>>>);

impl Traced {
    pub fn get(&self) -> Option<Rc<Trace>> {
        self.0.borrow().clone()
    }

    pub fn set(&self, trace: Option<Rc<Trace>>) {
        self.0.replace(trace);
    }
}
