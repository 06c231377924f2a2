//! A home for readonly and writable blocks of memory, kept in R2: of the
//! POSTs of JSON that a home answers, these need `get` and `set`. Deploy it, bind
//! it to Session Agent as `NOTES`, and define a block with
//! `"source": {"service": "NOTES"}`, and `"modelWrites": true` where the model is
//! to write it.

use serde::Deserialize;
use serde_json::json;
use session_agent_client::BlockKind;
use worker::{Conditional, Context, Env, Request, Response, Result, event};

/// The version of a text that isn't there.
const NOTHING: &str = "";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    agent: String,
    session_id: Option<String>,
    label: String,
    kind: BlockKind,
    /// With `set`.
    content: Option<String>,
    /// The `version` that `get` gave for the text that `content` was made from.
    expected_version: Option<String>,
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
    if !matches!(asked.kind, BlockKind::Readonly | BlockKind::Writable) {
        return Response::error("This home keeps readonly and writable blocks alone.", 404);
    }
    let bucket = env.bucket("NOTES_BUCKET")?;
    let place = asked.place();
    match path.as_str() {
        "/get" => {
            let object = bucket.get(&place).execute().await?;
            let Some((object, body)) = object.as_ref().and_then(|object| Some((object, object.body()?)))
            else {
                return Response::from_json(&json!({"content": null, "version": NOTHING}));
            };
            let content = body.text().await?;
            Response::from_json(&json!({"content": content, "version": object.etag()}))
        }
        "/set" => {
            let mut put = bucket.put(&place, asked.content.unwrap_or_default());
            if let Some(version) = asked.expected_version {
                put = put.only_if(condition(version));
            }
            match put.execute().await? {
                Some(_) => Response::from_json(&json!({})),
                // Somebody else has written there since: it is read and made anew.
                None => Response::error("The text has another version.", 409),
            }
        }
        _ => Response::error("This home keeps texts alone.", 404),
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
