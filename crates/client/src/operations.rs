//! Every operation: a struct of what it takes, named as the operation, and its answer.
//!
//! The crate's build makes them from the API's document, `openapi.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;
use crate::message::NewMessage;
use crate::operation::Operation;

include!(concat!(env!("OUT_DIR"), "/operations.rs"));
