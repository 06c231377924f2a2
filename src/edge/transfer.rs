//! Export and import on the wire: pages go out when they are asked for, bytes come
//! in as they arrive. Neither is ever held whole.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::host::Runtime;
use super::http::Body;
use super::storage::{Sqlite, Storage};
use super::stream::{Controller, pulled};
use crate::api::Reply;
use crate::budget::Hold;
use crate::error::Result;
use crate::transfer::export::{Export, render_failure};
use crate::transfer::import::Import;

/// The file as a stream that reads its next page when the last one was taken.
pub fn to_stream(storage: &Storage, mut export: Export) -> Result<JsValue> {
    let storage: Storage = storage.unchecked_ref::<JsValue>().clone().unchecked_into();
    let mut is_over = false;
    let pull = move |controller: Controller| -> Result<(), JsValue> {
        let page = match is_over {
            true => None,
            false => export
                .next_page(&Sqlite::new(&storage))
                .unwrap_or_else(|error| {
                    super::http::log(&error);
                    is_over = true;
                    Some(render_failure(&error))
                }),
        };
        match page {
            Some(page) => controller.enqueue(&Uint8Array::from(page.as_bytes())),
            None => controller.close(),
        }
    };
    let pull = Closure::<dyn FnMut(Controller) -> Result<(), JsValue>>::new(pull);
    pulled(&pull.into_js_value(), None)
}

/// Reads the whole body into the session.
pub async fn receive(db: &Sqlite<'_>, mut import: Import, body: Option<Body>) -> Result<Reply> {
    let mut body = match body {
        Some(body) => body,
        None => return Reply::json(&import.finish(db, &Runtime)?),
    };
    let mut hold = Hold::for_request(0)?;
    loop {
        match body.next().await {
            Ok(Some(bytes)) => {
                // What is kept of the file: a line that has begun, rows to be written.
                drop(hold);
                hold = match Hold::for_request(import.kept_bytes() + bytes.len()) {
                    Ok(hold) => hold,
                    Err(error) => {
                        import.give_up(db)?;
                        body.discard().await;
                        return Err(error);
                    }
                };
                if let Err(error) = import.push(db, &Runtime, &bytes) {
                    body.discard().await;
                    return Err(error);
                }
            }
            Ok(None) => return Reply::json(&import.finish(db, &Runtime)?),
            Err(error) => {
                import.give_up(db)?;
                return Err(error);
            }
        }
    }
}
