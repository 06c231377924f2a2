//! What was deployed for every agent, parsed once per isolate: defaults of the
//! configuration, blocks, tools. Each part is a type of the district that uses it, which
//! this module does not know. `api/defaults.rs` knows all parts and reads them.

use std::any::Any;

use serde::Serialize;

/// The parts, each of a type of its own, and what is written wrong.
pub struct Deployed {
    parts: Vec<Box<dyn Any>>,
    pub problems: Vec<DeployedProblem>,
}

/// Something in the deployed defaults that the Worker leaves out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeployedProblem {
    /// The variable or the file that holds it.
    pub source: String,
    /// Where it stands there, such as `maxSteps` or `blocks[1].kind`. Empty: the whole.
    pub field: String,
    pub message: String,
}

impl Deployed {
    pub fn new(problems: Vec<DeployedProblem>) -> Self {
        Self {
            parts: Vec::new(),
            problems,
        }
    }

    pub fn with<T: 'static>(mut self, part: T) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    pub fn find<T: 'static>(&self) -> Option<&T> {
        self.parts.iter().find_map(|part| part.downcast_ref())
    }
}
