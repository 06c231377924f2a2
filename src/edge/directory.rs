//! The Durable Object that stores one part of the directory of agents. It is called by
//! agents, the Worker and other parts; its decisions are in `directory/part.rs`.

use std::cell::OnceCell;
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use worker::worker_sys::DurableObjectState;
use worker::{Env, web_sys};

use super::host::Runtime;
use super::http::{self, ResponseResult};
use super::outbound::Bindings;
use super::storage::{ObjectStorage, Sqlite, wake_at};
use super::{policy, tasks};
use access::{self, Policy};
use api::route::decode;
use base::error::{Error, Result};
use base::host::Host as _;
use directory::MAX_CALL_BYTES;
use directory::part::{DirectoryPart, RETRY_MS};

#[wasm_bindgen]
pub struct AgentDirectory(Rc<PartObject>);

struct PartObject {
    storage: ObjectStorage,
    policy: Rc<Policy>,
    outbound: Bindings,
    /// The part's name, from the platform or else from the first request.
    name: OnceCell<String>,
}

#[wasm_bindgen]
impl AgentDirectory {
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Result<Self, JsValue> {
        let name = OnceCell::new();
        if let Some(known) = state.id()?.name() {
            // The cell is empty.
            let _ = name.set(known);
        }
        Ok(Self(Rc::new(PartObject {
            storage: ObjectStorage::of(&state)?,
            policy: policy(&env),
            outbound: Bindings::new(&env),
            name,
        })))
    }

    pub fn fetch(&self, request: web_sys::Request) -> Promise {
        let object = Rc::clone(&self.0);
        tasks::promise(async move { object.fetch(&request).await.map(JsValue::from) })
    }

    pub fn alarm(&self) -> Promise {
        let object = Rc::clone(&self.0);
        tasks::promise(async move {
            let db = Sqlite::new(&object.storage);
            let is_left = match object.part(&db) {
                Ok(part) => part.wake().await,
                Err(_) => Ok(false),
            };
            if let Err(error) = object.schedule_retry(is_left).await {
                http::log(&error);
            }
            Ok(JsValue::UNDEFINED)
        })
    }
}

impl PartObject {
    async fn fetch(&self, request: &web_sys::Request) -> ResponseResult {
        match self.answer(request).await {
            Ok(answer) => http::respond(200, &answer.as_str().into(), None, &[]),
            Err(error) => http::refuse(&error, None),
        }
    }

    async fn answer(&self, request: &web_sys::Request) -> Result<String> {
        let authorization = http::find_header(request, "authorization");
        let bearer = access::find_bearer(authorization.as_deref());
        access::permit_directory(&access::identify(&self.policy, &Runtime, None, bearer)?)?;
        let url = request.url();
        let part = decode("part", url.rsplit('/').next().unwrap_or_default())?;
        if *self.name.get_or_init(|| part.clone()) != part {
            return Err(Error::invalid(
                "part",
                "The address is for another shard of the directory.",
            ));
        }
        let body = http::read_body(request, None, MAX_CALL_BYTES).await?;
        let db = Sqlite::new(&self.storage);
        let part = self.part(&db)?;
        let answer = part.answer(&body.bytes).await?;
        self.schedule_retry(part.has_unreported_change()).await?;
        Ok(answer)
    }

    fn part<'a>(&'a self, db: &'a Sqlite<'_>) -> Result<DirectoryPart<'a>> {
        let name = self.name.get();
        Ok(DirectoryPart {
            name: name.ok_or_else(|| Error::storage("a part of the directory without a name"))?,
            db,
            host: &Runtime,
            outbound: &self.outbound,
        })
    }

    async fn schedule_retry(&self, is_left: Result<bool>) -> Result<()> {
        if is_left? {
            wake_at(&self.storage, Runtime.now_ms() + RETRY_MS).await
        } else {
            Ok(())
        }
    }
}
