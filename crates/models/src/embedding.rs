//! Computes vectors of texts with the model that `EMBEDDING_MODEL` names: a limited number of texts
//! per request. Each answer is checked against its request.

use serde::{Deserialize, Serialize};

use super::choice::{ModelName, Provider};
use super::send::{ModelEndpoint, VECTORS_PATH, openai_endpoint, send, unanswered};
use super::to_json;
use base::error::{Code, Error, Result};
use base::json::{self, RawValue};
use base::outbound::{Outbound, read_all};
use base::settings::Setting;

const SETTING: &str = Setting::EmbeddingModel.name();

/// The most texts of one request: Workers AI accepts 100.
pub const MAX_BATCH_TEXTS: usize = 100;

/// Characters of a text that are sent. Models read from 512 to 8,192 tokens. Those with the least
/// truncate a longer text themselves; OpenAI's reject it.
pub const MAX_TEXT_CHARS: usize = 8_000;

/// The most numbers of a vector; the longest vectors in use have 4,096.
const MAX_DIMENSIONS: usize = 4_096;

/// A model that computes vectors of texts.
#[derive(Clone, Debug, PartialEq)]
pub enum EmbeddingModel {
    WorkersAi(String),
    OpenAi(String),
    /// The method of a class that extends this one.
    Own(String),
}

impl EmbeddingModel {
    /// The Worker's embedding model. `None`: it has none.
    pub fn find(outbound: &dyn Outbound) -> Result<Option<Self>> {
        let setting = outbound.find_setting(Setting::EmbeddingModel);
        let Some(text) = setting.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        Ok(Some(match ModelName::parse(SETTING, &text) {
            Ok(ModelName::Served(Provider::WorkersAi, model)) => Self::WorkersAi(model),
            Ok(ModelName::Served(Provider::OpenAi, model)) => Self::OpenAi(model),
            Ok(ModelName::Served(Provider::Own, model)) => Self::Own(model),
            Ok(ModelName::Served(Provider::Anthropic, _) | ModelName::Demo) | Err(_) => {
                return Err(Error::invalid(
                    SETTING,
                    "`EMBEDDING_MODEL` must be `workers-ai:<model>` or `openai:<model>`.",
                ));
            }
        }))
    }

    /// The model's name, as the setting gives it.
    pub fn name(&self) -> String {
        let (Self::WorkersAi(model) | Self::OpenAi(model) | Self::Own(model)) = self;
        format!("{}:{model}", self.provider().name())
    }

    fn provider(&self) -> Provider {
        match self {
            Self::WorkersAi(_) => Provider::WorkersAi,
            Self::OpenAi(_) => Provider::OpenAi,
            Self::Own(_) => Provider::Own,
        }
    }
}

/// Returns one vector per text, in order, all of one length.
pub async fn embed(
    outbound: &dyn Outbound,
    model: &EmbeddingModel,
    texts: &[String],
) -> Result<Vec<Vec<f32>>> {
    let provider = model.provider();
    let endpoint = match model {
        EmbeddingModel::WorkersAi(model) => ModelEndpoint::Ai(model),
        EmbeddingModel::OpenAi(_) => openai_endpoint(outbound, "embeddings")?,
        EmbeddingModel::Own(_) => ModelEndpoint::Own(VECTORS_PATH),
    };
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
    for batch in texts.chunks(MAX_BATCH_TEXTS) {
        let mut answer = send(outbound, provider, &endpoint, &encode(model, batch)).await?;
        let body = read_all(answer.body.as_mut())
            .await
            .map_err(|failure| unanswered(provider, &failure).error)?;
        let decoded = decode(&body, batch.len()).map_err(|what| {
            Error::new(
                Code::ModelFailed,
                format!("{} {what}. Check `EMBEDDING_MODEL`.", provider.title()),
            )
            .with("provider", provider.name())
        })?;
        vectors.extend(decoded);
    }
    let mut lengths = vectors.iter().map(Vec::len);
    let first = lengths.next().unwrap_or_default();
    if lengths.any(|length| length != first) {
        return Err(Error::new(
            Code::ModelFailed,
            format!("{} sent vectors of different lengths.", provider.title()),
        ));
    }
    Ok(vectors)
}

fn encode(model: &EmbeddingModel, texts: &[String]) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Body<'a> {
        WorkersAi { text: Vec<&'a str> },
        OpenAi { model: &'a str, input: Vec<&'a str> },
    }
    let texts = texts.iter().map(|text| shorten(text)).collect();
    to_json(&match model {
        EmbeddingModel::WorkersAi(_) => Body::WorkersAi { text: texts },
        EmbeddingModel::OpenAi(model) | EmbeddingModel::Own(model) => Body::OpenAi {
            model,
            input: texts,
        },
    })
}

/// Models reject an empty text, so a space is sent instead.
fn shorten(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_TEXT_CHARS);
    match end.and_then(|(end, _)| text.get(..end)).unwrap_or(text) {
        "" => " ",
        text => text,
    }
}

/// Reads both formats: `data` has vectors, or objects with one vector each.
fn decode(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, &'static str> {
    #[derive(Default, Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct IndexedEmbedding {
        index: Option<usize>,
        embedding: Vec<f32>,
    }
    let mut answer: Answer<'_> = match json::decode_bytes(body) {
        Err(error) if error.is_syntax() => return Err("sent vectors that are not valid JSON"),
        answer => answer.unwrap_or_default(),
    };
    let result = answer.result.map(RawValue::get);
    if let Some(result) = result.filter(|result| result.starts_with('{')) {
        answer = json::decode(result).unwrap_or_default();
    }
    let data = answer.data.map_or("null", RawValue::get);
    let vectors: Vec<Vec<f32>> = match json::decode(data) {
        Ok(vectors) => vectors,
        Err(_) => {
            let mut indexed: Vec<IndexedEmbedding> =
                json::decode(data).map_err(|_| "sent an answer without vectors")?;
            indexed.sort_by_key(|one| one.index);
            indexed
                .into_iter()
                .map(|indexed| indexed.embedding)
                .collect()
        }
    };
    if vectors.len() != count {
        return Err("sent a different number of vectors than texts");
    }
    let is_vector = |vector: &Vec<f32>| {
        (1..=MAX_DIMENSIONS).contains(&vector.len()) && vector.iter().all(|x| x.is_finite())
    };
    if vectors.iter().all(is_vector) {
        Ok(vectors)
    } else {
        Err("sent vectors without numbers, or with too many")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use base::testing::{Script, ScriptedAnswer, wait_for};

    fn set(name: &str, value: &str) -> Script {
        let script = Script::default();
        let mut settings = script.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
        drop(settings);
        script
    }

    fn texts(count: usize) -> Vec<String> {
        (0..count).map(|n| n.to_string()).collect()
    }

    #[test]
    fn the_setting_selects_the_model_or_none() {
        assert_eq!(EmbeddingModel::find(&Script::default()), Ok(None));
        let found = |text| EmbeddingModel::find(&set(SETTING, text));
        assert_eq!(
            found("workers-ai:@cf/baai/bge-m3"),
            Ok(Some(EmbeddingModel::WorkersAi(
                "@cf/baai/bge-m3".to_owned()
            )))
        );
        assert_eq!(
            found("openai:text-embedding-3-small"),
            Ok(Some(EmbeddingModel::OpenAi(
                "text-embedding-3-small".to_owned()
            )))
        );
        for text in ["demo", "anthropic:x", "bge", "openai:"] {
            assert_eq!(found(text).unwrap_err().details()["field"], SETTING);
        }
    }

    #[test]
    fn workers_ai_embeds_texts() {
        let outbound = Script::default();
        let body = json!({"shape": [2, 2], "data": [[0.5, 1], [0.25, -1.0]], "pooling": "cls"});
        outbound.answer(ScriptedAnswer::json(&body));
        let model = EmbeddingModel::WorkersAi("@cf/m".to_owned());
        let texts = ["a".to_owned(), String::new()];
        let vectors = wait_for(embed(&outbound, &model, &texts)).unwrap();
        assert_eq!(vectors, [[0.5, 1.0], [0.25, -1.0]]);
        assert_eq!(
            *outbound.ai_calls.borrow(),
            [("@cf/m".to_owned(), r#"{"text":["a"," "]}"#.to_owned())]
        );
    }

    #[test]
    fn openai_embeddings_are_sorted_by_index() {
        let outbound = set("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        let body = json!({"object": "list", "data": [
            {"object": "embedding", "index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}
        ]});
        outbound.answer(ScriptedAnswer::json(&body));
        let model = EmbeddingModel::OpenAi("m".to_owned());
        let vectors = wait_for(embed(&outbound, &model, &texts(2))).unwrap();
        assert_eq!(vectors, [[1.0], [2.0]]);
        let calls = outbound.calls.borrow();
        assert_eq!(calls[0].body, r#"{"model":"m","input":["0","1"]}"#);
        assert_eq!(
            calls[0].endpoint,
            base::outbound::Endpoint::Url("http://127.0.0.1:1/v1/embeddings".to_owned())
        );
    }

    #[test]
    fn many_texts_are_batched_and_long_ones_truncated() {
        let outbound = Script::default();
        for count in [MAX_BATCH_TEXTS, 1] {
            outbound.answer(ScriptedAnswer::json(&json!({"data": vec![[1.0]; count]})));
        }
        let model = EmbeddingModel::WorkersAi("@cf/m".to_owned());
        let mut sent = texts(MAX_BATCH_TEXTS);
        sent.push("é".repeat(MAX_TEXT_CHARS + 1));
        assert_eq!(
            wait_for(embed(&outbound, &model, &sent)).unwrap().len(),
            101
        );
        let calls = outbound.ai_calls.borrow();
        assert_eq!(calls[1].1.matches('é').count(), MAX_TEXT_CHARS);
        assert_eq!(wait_for(embed(&outbound, &model, &[])), Ok(vec![]));
        assert_eq!(calls.len(), 2);
    }

    #[test]
    fn an_answer_with_missing_vectors_fails() {
        let model = EmbeddingModel::WorkersAi("@cf/m".to_owned());
        for body in [
            json!({"data": [[1.0]]}),
            json!({"data": [[1.0], [1.0, 2.0]]}),
            json!({"data": [[], []]}),
            json!({"data": [[1.0], ["x"]]}),
            json!({"data": [[1.0], vec![1.0; MAX_DIMENSIONS + 1]]}),
            json!({"data": []}),
            json!({}),
            json!([]),
        ] {
            let outbound = Script::default();
            outbound.answer(ScriptedAnswer::json(&body));
            let error = wait_for(embed(&outbound, &model, &texts(2))).unwrap_err();
            assert_eq!(error.code.name(), "model_failed", "{body}");
        }
    }

    #[test]
    fn an_overloaded_model_is_retried() {
        let outbound = Script::default();
        outbound.answer(Ok(ScriptedAnswer::text(
            500,
            "AiError: 3040: Out of capacity",
        )));
        outbound.answer(ScriptedAnswer::json(&json!({"data": [[1.0]]})));
        let model = EmbeddingModel::WorkersAi("@cf/m".to_owned());
        assert!(wait_for(embed(&outbound, &model, &texts(1))).is_ok());
        assert_eq!(*outbound.pauses_ms.borrow(), [500]);
    }
}
