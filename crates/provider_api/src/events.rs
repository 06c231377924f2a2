//! The calls of one request to the model, as a client may see them: the calls of the client's own
//! tools. The others run here.

use std::collections::HashSet;

/// A call that the model has started.
pub struct StartedCall {
    /// The model's index of the call.
    pub index: usize,
    /// The id in the log: the provider's own, unless another call of the conversation has it.
    pub id: String,
    /// The call's number in the answer. `None`: the call runs here.
    pub number: Option<usize>,
    /// Whether its arguments came in pieces.
    pub has_pieces: bool,
}

/// The tools of the client, and the calls of the current request to the model.
pub struct Calls {
    tools: HashSet<String>,
    /// The number of calls of the client's tools so far, in all requests.
    client_calls: usize,
    pub started: Vec<StartedCall>,
}

impl Calls {
    pub fn new(tools: impl Iterator<Item = String>) -> Self {
        Self {
            tools: tools.collect(),
            client_calls: 0,
            started: Vec::new(),
        }
    }

    /// The next request to the model begins.
    pub fn begin_step(&mut self) {
        self.started.clear();
    }

    pub fn is_clients(&self, name: &str) -> bool {
        self.tools.contains(name)
    }

    /// The call's number in the answer. `None`: the call runs here.
    pub fn begin(&mut self, index: usize, id: String, name: &str) -> Option<usize> {
        let number = self.is_clients(name).then_some(self.client_calls);
        self.client_calls += usize::from(number.is_some());
        self.started.push(StartedCall {
            index,
            id,
            number,
            has_pieces: false,
        });
        number
    }

    fn find_mut(&mut self, index: usize) -> Option<&mut StartedCall> {
        self.started.iter_mut().find(|call| call.index == index)
    }

    /// Records a piece of a call's arguments. Returns the call's number in the answer.
    /// `None`: the call runs here.
    pub fn record_piece(&mut self, index: usize) -> Option<usize> {
        let call = self.find_mut(index)?;
        call.has_pieces = true;
        call.number
    }

    /// A complete call's number in the answer, and whether its arguments came in pieces. `None`:
    /// the call runs here.
    pub fn complete(&mut self, index: usize) -> Option<(usize, bool)> {
        let call = self.find_mut(index)?;
        Some((call.number?, call.has_pieces))
    }

    /// Whether the turn continues by itself: the model called tools, but none of the client's.
    pub fn are_all_ours(&self) -> bool {
        !self.started.is_empty() && self.started.iter().all(|call| call.number.is_none())
    }
}
