//! Items of stored answers that a request of `Responses` names by their ids instead of sending
//! them: the AI SDK does so for each text of the assistant.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::responses_answer::ResponsesAnswer;
use super::responses_stored::{PREFIX, find_end};
use crate::stored_answer::find_stored;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, RawValue};
use chat::run::agent::Agent;

/// The most answers from which the items of one request are read.
const MAX_ANSWERS: usize = 1_000;

pub struct StoredItems<'a> {
    agent: &'a Agent<'a>,
    /// The outputs of the answers that were read. The key is the answer's name.
    outputs: RefCell<HashMap<String, Vec<Value>>>,
}

impl<'a> StoredItems<'a> {
    pub fn new(agent: &'a Agent<'a>) -> Self {
        Self {
            agent,
            outputs: RefCell::default(),
        }
    }

    /// The item with this id. `field`: the field of the request that names it.
    pub fn get(&self, field: &str, id: &str) -> Result<Box<RawValue>> {
        match self.find(field, id)? {
            Some(item) => json::raw(json::text(&item)),
            None => Err(Error::invalid(
                field,
                format!(
                    "`{field}` refers to an item that is not stored here. Send the item itself instead of its id."
                ),
            )),
        }
    }

    fn find(&self, field: &str, id: &str) -> Result<Option<Value>> {
        let Some(name) = name_of_answer(id) else {
            return Ok(None);
        };
        let mut outputs = self.outputs.borrow_mut();
        let read = outputs.len();
        let output = match outputs.entry(name.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) if read < MAX_ANSWERS => new.insert(self.read_output(name)?),
            Entry::Vacant(_) => {
                return Err(Error::invalid(
                    field,
                    format!("`input` refers to items of more than {MAX_ANSWERS} answers."),
                ));
            }
        };
        let mut items = output.iter();
        let found = items.find(|item| item.get("id").and_then(Value::as_str) == Some(id));
        Ok(found.cloned())
    }

    /// The items of an answer, if it was stored.
    fn read_output(&self, name: &str) -> Result<Vec<Value>> {
        let Some(end) = find_end(self.agent, None, &format!("{PREFIX}{name}"))? else {
            return Ok(Vec::new());
        };
        let session_id = Id::parse(end.session_id).map_err(Error::storage)?;
        let stored = find_stored(self.agent.db, &session_id, end.seq)?;
        let head = (name.to_owned(), 0, String::new());
        let mut answer = ResponsesAnswer::new(head, stored.tools.into_iter(), None, true);
        for event in stored.events {
            answer.handle(event);
        }
        match answer.whole().get_mut("output").map(Value::take) {
            Some(Value::Array(output)) => Ok(output),
            _ => Ok(Vec::new()),
        }
    }
}

/// The name of the answer in an item's id, after the prefix: see `id_of_open` in
/// [`ResponsesAnswer`].
fn name_of_answer(id: &str) -> Option<&str> {
    let (_, rest) = id.split_once('_')?;
    rest.rsplit_once('_').map(|(name, _)| name)
}
