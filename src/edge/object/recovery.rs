//! The platform's point-in-time recovery. On a developer's machine, the storage has these
//! functions, but one returns a bookmark of zeros and the others throw.

use js_sys::{JsString, Reflect};
use wasm_bindgen::prelude::*;

use super::Object;
use crate::edge::outbound::{call, describe};
use base::background::Background as _;
use base::outbound::{LocalBoxFuture, Outbound as _};
use base::recovery::{Recovery, RecoveryFailure, check_bookmark};

/// How long the object stays alive after a restore, so that the answer can be sent.
const LAST_WORDS_MS: i64 = 250;

impl Recovery for Object {
    fn find_bookmark(
        &self,
        at_ms: Option<i64>,
    ) -> LocalBoxFuture<'_, Result<String, RecoveryFailure>> {
        Box::pin(async move {
            match at_ms {
                Some(at_ms) => self.ask("getBookmarkForTime", &(at_ms as f64).into()).await,
                None => self.ask("getCurrentBookmark", &JsValue::UNDEFINED).await,
            }
        })
    }

    fn restore_next<'a>(
        &'a self,
        bookmark: &'a str,
    ) -> LocalBoxFuture<'a, Result<String, RecoveryFailure>> {
        Box::pin(self.ask_with("onNextSessionRestoreBookmark", bookmark))
    }
}

impl Object {
    async fn ask_with(&self, function: &str, text: &str) -> Result<String, RecoveryFailure> {
        self.ask(function, &text.into()).await
    }

    async fn ask(&self, function: &str, argument: &JsValue) -> Result<String, RecoveryFailure> {
        let answer = call(self.storage.as_js(), function, argument).await;
        match answer.map(JsCast::dyn_into::<JsString>) {
            Ok(Ok(bookmark)) => check_bookmark(String::from(bookmark)),
            Ok(Err(_)) => Err(RecoveryFailure::Absent),
            Err(thrown) => Err(RecoveryFailure::thrown(describe(&thrown))),
        }
    }

    /// Ends this activation of the object after its answer. The platform starts a new one
    /// with the next request.
    pub(super) async fn end_activation(&self) {
        self.outbound.sleep(LAST_WORDS_MS).await;
        let reason = JsValue::from("The agent is restarting with a restored state.");
        let ended = Reflect::get(self.state.as_ref(), &"abort".into())
            .and_then(JsCast::dyn_into::<js_sys::Function>)
            .and_then(|abort| abort.call1(self.state.as_ref(), &reason));
        if ended.is_err() {
            self.log(&base::error::Error::storage(
                "the object could not end its life",
            ));
        }
    }
}
