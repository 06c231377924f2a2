//! An agent's object, as the Worker in front calls it.

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use worker::{Env, web_sys};

use super::env;
use base::settings::Setting;

#[wasm_bindgen]
extern "C" {
    type Namespace;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    fn get_by_name(this: &Namespace, name: &JsValue) -> Result<Stub, JsValue>;

    pub type Stub;

    #[wasm_bindgen(method, catch)]
    pub fn fetch(this: &Stub, request: &web_sys::Request) -> Result<Answer, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn call(
        this: &Stub,
        operation: &JsValue,
        json: &JsValue,
        options: &JsValue,
    ) -> Result<Answer, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn request(
        this: &Stub,
        operation: &JsValue,
        json: &JsValue,
        options: &JsValue,
    ) -> Result<Answer, JsValue>;

    /// The promise of an answer.
    pub type Answer;

    #[wasm_bindgen(method)]
    pub fn catch(this: &Answer, refuse: &Function) -> Promise;

    #[wasm_bindgen(method, js_name = catch)]
    pub fn catch_call(this: &Answer, refuse: &JsValue) -> Promise;
}

impl Answer {
    pub fn promise(self) -> Promise {
        self.unchecked_into()
    }
}

pub fn find_object(env: &Env, agent: &JsValue) -> Result<Stub, JsValue> {
    let agents = env::find(env, Setting::SessionAgent.name()).unwrap_or_default();
    agents.unchecked_into::<Namespace>().get_by_name(agent)
}
