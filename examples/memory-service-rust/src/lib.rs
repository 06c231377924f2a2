//! A home for readonly and writable blocks of memory, kept in Workers KV: of the
//! four POSTs of JSON that a home answers, these need `get` and `set`. Deploy it,
//! bind it to Session Agent as `NOTES`, and define a block with
//! `"source": {"service": "NOTES"}`.

use serde::Deserialize;
use serde_json::json;
use worker::{Context, Env, Request, Response, Result, event};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    agent: String,
    session_id: Option<String>,
    label: String,
    /// With `set`.
    content: Option<String>,
}

impl Asked {
    /// A JSON array, so that no name reaches into another's.
    fn place(&self) -> String {
        json!([self.agent, self.session_id, self.label]).to_string()
    }
}

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _: Context) -> Result<Response> {
    let path = request.path();
    let asked: Asked = request.json().await?;
    let kv = env.kv("NOTES_KV")?;
    match path.as_str() {
        "/get" => {
            let content = kv.get(&asked.place()).text().await?;
            Response::from_json(&json!({"content": content}))
        }
        "/set" => {
            let place = asked.place();
            let content = asked.content.unwrap_or_default();
            kv.put(&place, content)?.execute().await?;
            Response::from_json(&json!({}))
        }
        _ => Response::error("This home keeps texts alone.", 404),
    }
}
