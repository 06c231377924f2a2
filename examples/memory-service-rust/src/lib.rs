//! A backend that stores readonly and writable blocks of memory in R2. For these kinds, a
//! backend answers two POST requests: `get` and `set`. Deploy this Worker, bind it to Session Agent as
//! `NOTES`, and define a block with `"source": {"service": "NOTES"}`. Add `"modelWrites": true` if the
//! model may write the block.

use serde::Deserialize;
use serde_json::json;
use session_agent_client::BlockKind;
use worker::{Conditional, Context, Env, Request, Response, Result, event};

/// The version of a text that doesn't exist.
const NOTHING: &str = "";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockRequest {
    agent: String,
    session_id: Option<String>,
    label: String,
    kind: BlockKind,
    /// With `set`.
    content: Option<String>,
    /// The `version` that `get` returned for the text that `content` replaces.
    expected_version: Option<String>,
}

impl BlockRequest {
    /// A JSON array, so that no two blocks share a key.
    fn object_key(&self) -> String {
        json!([self.agent, self.session_id, self.label]).to_string()
    }
}

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _: Context) -> Result<Response> {
    let path = request.path();
    let input: BlockRequest = request.json().await?;
    if !matches!(input.kind, BlockKind::Readonly | BlockKind::Writable) {
        return Response::error("This backend stores only readonly and writable blocks.", 404);
    }
    let bucket = env.bucket("NOTES_BUCKET")?;
    let object_key = input.object_key();
    match path.as_str() {
        "/get" => {
            let object = bucket.get(&object_key).execute().await?;
            let Some((object, body)) = object.as_ref().and_then(|object| Some((object, object.body()?)))
            else {
                return Response::from_json(&json!({"content": null, "version": NOTHING}));
            };
            let content = body.text().await?;
            Response::from_json(&json!({"content": content, "version": object.etag()}))
        }
        "/set" => {
            let mut put = bucket.put(&object_key, input.content.unwrap_or_default());
            if let Some(version) = input.expected_version {
                put = put.only_if(condition(version));
            }
            match put.execute().await? {
                Some(_) => Response::from_json(&json!({})),
                // The text has changed since it was read. Session Agent reads it again and retries.
                None => Response::error("The text has another version.", 409),
            }
        }
        _ => Response::error("This backend answers only `get` and `set`.", 404),
    }
}

fn condition(version: String) -> Conditional {
    let is_nothing = version == NOTHING;
    Conditional {
        etag_matches: (!is_nothing).then_some(version),
        etag_does_not_match: is_nothing.then(|| "*".to_owned()),
        uploaded_before: None,
        uploaded_after: None,
    }
}
