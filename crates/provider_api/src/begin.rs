//! Begins the turn of a request, or joins the turn that the same request began.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::calls::ApiHeaders;
use crate::history::History;
use crate::history_position::{HistoryPosition, find_position, find_previous, named_session};
use crate::listener::{ApiListener, Head, Source};
use crate::openai::referred_items::StoredItems;
use crate::openai::responses_tools::is_function;
use crate::request::{Item, ParsedRequest};
use crate::stored_answer::find_stored;
use crate::{anthropic, openai};
use access::{permit, permit_by_name};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{JsonObject, RawValue};
use chat::request::api_turn::ApiTurn;
use chat::request::path_digest::digest_of;
use chat::run::agent::{Agent, CHAT_RULE};
use chat::run::api_writer::{ApiRequest, start_api};
use chat::run::resume::resume_turn;
use chat::run::running_turns::RunningTurn;
use chat::run::work::TurnWork;
use chat::turn::store::find_turn;
use conversation::session::path_digests::find_longest;
use models::call::{choose_model, has_responses};
use models::caller_fields::{CallerFields, ProviderApi, fields_of};
use models::choice::{ModelName, Provider};
use store::config::{Config, check_instructions, load_config};

/// Names by which a request selects the agent's own model.
const OWN_MODEL: &[&str] = &["default", "session-agent"];

/// The outcome of a request.
pub enum Beginning {
    Answer(StartedAnswer),
    /// Another turn of this session runs.
    Busy(Id),
}

pub struct StartedAnswer {
    pub session_id: Id,
    pub is_streamed: bool,
    pub listener: ApiListener,
    /// The turn to run. `None`: it runs already, or has ended.
    pub work: Option<TurnWork>,
}

/// A session's id, if a header can contain it.
pub fn find_shown_id(session_id: &Id) -> Option<&str> {
    header_of(session_id.as_str())
}

fn header_of(text: &str) -> Option<&str> {
    let is_visible = |byte| (0x20..0x7F).contains(&byte);
    text.bytes().all(is_visible).then_some(text)
}

/// Begins a turn. `address`: the session in the request's URL.
pub fn begin(
    agent: &Agent<'_>,
    api: ProviderApi,
    address: Option<&Id>,
    headers: &ApiHeaders,
    body: &[u8],
) -> Result<Beginning> {
    permit_by_name(agent.caller, CHAT_RULE)?;
    let mut named = named_session(agent, address, headers)?;
    let mut is_stored = headers.is_stored;
    let mut own_fields = None;
    let parsed = match api {
        ProviderApi::ChatCompletions => openai::request::parse(body)?,
        ProviderApi::Messages => anthropic::request::parse(body)?,
        ProviderApi::Responses => {
            let stored = StoredItems::new(agent);
            let in_responses = |name: &str| uses_responses(agent, name);
            let ask = openai::responses_request::parse(body, &stored, &in_responses)?;
            if let Some(conversation) = &ask.conversation {
                // The URL and the header take precedence.
                if address.is_none() && headers.session_id.is_none() {
                    named = named_session(agent, Some(conversation), headers)?;
                }
                is_stored = true;
            }
            let (parsed, ask) = ask.split();
            own_fields = Some(ask);
            parsed
        }
    };
    check_end(&parsed.items)?;
    let request = digest_of_request(named.as_ref(), headers, body);
    let head = Head {
        api,
        is_streamed: parsed.is_streamed,
        wants_usage: parsed.wants_usage,
        model: parsed.model.clone(),
        tools: parsed.given_tools.keys().cloned().collect(),
        created_s: agent.host.now_ms() / 1000,
        echo: own_fields.as_ref().map(|ask| ask.echo.clone()),
        wants_encrypted: own_fields.as_ref().is_some_and(|ask| ask.wants_encrypted),
    };
    // An interrupted turn is resumed before it is joined.
    agent.starter.recover();
    if let Some(joined) = join(agent, &head, named.as_ref(), headers, &request)? {
        return Ok(Beginning::Answer(joined));
    }
    let previous = own_fields.as_ref().and_then(|ask| ask.previous.as_ref());
    let found = match previous {
        Some(previous) => find_previous(agent, named.as_ref(), previous, &parsed.items)?,
        None => find_position(agent, named, is_stored, &parsed.items)?,
    };
    if let Some(joined) = resume_same(agent, &head, &found.session_id, &request)? {
        return Ok(Beginning::Answer(joined));
    }
    let session_id = found.session_id.clone();
    let turn_id = Id::mint_turn(agent.host);
    let mut request = to_request(agent, api, headers, parsed, found, request)?;
    request.api.caller.in_responses = own_fields.as_ref().is_some_and(|ask| ask.in_responses);
    let is_named = own_fields.is_some_and(|ask| ask.is_stored);
    request.api.response_id = is_named.then(|| format!("resp_{turn_id}"));
    let work = match start_api(agent, &session_id, request, turn_id.as_str()) {
        Ok(work) => work,
        Err(error) if error.code == Code::TurnInProgress => return Ok(Beginning::Busy(session_id)),
        Err(error) => return Err(error),
    };
    let running = Rc::clone(work.running());
    Ok(Beginning::Answer(follow(head, running, Some(work))))
}

fn follow(head: Head, running: Rc<RunningTurn>, work: Option<TurnWork>) -> StartedAnswer {
    StartedAnswer {
        session_id: running.session_id.clone(),
        is_streamed: head.is_streamed,
        listener: ApiListener::new(head, Source::Running(running)),
        work,
    }
}

/// Joins the running turn of the same request. If the request has a key and its turn has ended,
/// returns the stored answer.
fn join(
    agent: &Agent<'_>,
    head: &Head,
    named: Option<&Id>,
    headers: &ApiHeaders,
    request: &str,
) -> Result<Option<StartedAnswer>> {
    if let Some(running) = agent.turns.find_of_request(request) {
        permit(agent.caller, CHAT_RULE, Some(&running.session_id))?;
        return Ok(Some(follow(head.clone(), running, None)));
    }
    if headers.key.is_none() {
        return Ok(None);
    }
    let ends = find_longest(agent.db, named, &[request.to_owned()], true)?;
    let Some(end) = ends.into_iter().next_back() else {
        return Ok(None);
    };
    let session_id = Id::parse(end.session_id).map_err(Error::storage)?;
    permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    let stored = find_stored(agent.db, &session_id, end.seq)?;
    Ok(Some(StartedAnswer {
        session_id,
        is_streamed: head.is_streamed,
        listener: ApiListener::new(
            head.clone(),
            Source::Stored("stored".to_owned(), stored.events),
        ),
        work: None,
    }))
}

/// Resumes the turn of the same request, if the turn was interrupted when the object was evicted.
fn resume_same(
    agent: &Agent<'_>,
    head: &Head,
    session_id: &Id,
    request: &str,
) -> Result<Option<StartedAnswer>> {
    if agent.turns.find(session_id).is_some() {
        return Ok(None);
    }
    let is_same = |api: Option<&ApiTurn>| api.is_some_and(|api| api.request == request);
    let found = find_turn(agent.db, session_id)?;
    if !found.is_some_and(|turn| is_same(turn.api.as_deref())) {
        return Ok(None);
    }
    let work = resume_turn(agent, session_id)?;
    let Some(running) = agent.turns.find(session_id) else {
        return Ok(None);
    };
    Ok(Some(follow(head.clone(), running, work)))
}

/// The digest by which a repeated request is recognized: it has the same session, key, headers and
/// body. With a key, it is recognized as long as its answer is stored; without one, as long as its
/// turn runs.
fn digest_of_request(named: Option<&Id>, headers: &ApiHeaders, body: &[u8]) -> String {
    let key = headers.key.as_deref().unwrap_or_default();
    let settings = format!("{:?} {}", headers.memory, headers.is_stored);
    let session = named.map_or("", Id::as_str);
    digest_of(&[
        b"request",
        session.as_bytes(),
        key.as_bytes(),
        settings.as_bytes(),
        body,
    ])
}

/// Checks that the last item is a user's message or a tool's result: a turn answers only those.
fn check_end(items: &[Item]) -> Result<()> {
    match items.last() {
        Some(Item::User { .. } | Item::Result { .. }) => Ok(()),
        Some(Item::Assistant { .. }) => Err(Error::invalid(
            "messages",
            "The last message is from the assistant. A turn answers a user's message or a tool's result; prefilling the answer is not supported.",
        )),
        None => Err(Error::invalid(
            "messages",
            "`messages` contains no message to answer: send a user's message.",
        )),
    }
}

fn to_request(
    agent: &Agent<'_>,
    api: ProviderApi,
    headers: &ApiHeaders,
    parsed: ParsedRequest,
    found: HistoryPosition,
    request: String,
) -> Result<ApiRequest> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let (model, provider) = choose(agent, &config, api, &parsed.model)?;
    if provider != Some(api.provider()) {
        check_translated(&parsed.fields, provider)?;
    }
    check_instructions(&parsed.system)?;
    let mut tools = parsed.tool_list.iter();
    if tools.any(|tool| !is_function(tool)) && !agent.caller.may_bring_client_tools() {
        return Err(access::needs_allowance("tools", "clientTools"));
    }
    let asks_servers = fields_of(parsed.fields.as_str())
        .into_iter()
        .find(|(name, _)| SERVERS.contains(&name.as_ref()));
    if let Some((name, _)) = asks_servers
        && !agent.caller.may_bring_client_tools()
    {
        return Err(access::needs_allowance(&name, "clientTools"));
    }
    let history = History::new(agent, api, &config, &parsed.items);
    let mut rest = parsed.items;
    let rest = rest.split_off(found.known.min(rest.len()));
    let (answers, rest) = history.split_answers(&found, rest)?;
    let events = history.to_events(rest)?;
    Ok(ApiRequest {
        api: ApiTurn {
            caller: CallerFields {
                api,
                in_responses: false,
                is_streamed: parsed.is_streamed,
                fields: parsed.fields,
                tools: if parsed.tool_list.is_empty() {
                    parsed.given_tools
                } else {
                    BTreeMap::new()
                },
                tool_list: parsed.tool_list,
                system_texts: parsed.system.len(),
                system: parsed.system_blocks,
                cache_marks: parsed.cache_marks,
                max_tokens: parsed.max_tokens.filter(|tokens| *tokens > 0),
                temperature: parsed.temperature,
                beta: headers.beta.clone(),
            },
            path: found.path.as_str().to_owned(),
            request,
            response_id: None,
            has_key: headers.key.is_some(),
            memory: headers.memory_of(agent.caller, &config)?,
            runs_tools: parsed.is_choice_free,
        },
        model,
        system_instructions: parsed.system,
        client_tools: parsed.tools,
        position: found.position,
        answers,
        events,
    })
}

/// Fields that make a provider call servers of the caller's choice.
const SERVERS: &[&str] = &["mcp_servers", "web_search_options", "plugins", "container"];

/// The model that the request selects, if it is not the agent's own, and who serves it.
fn choose(
    agent: &Agent<'_>,
    config: &Config,
    api: ProviderApi,
    name: &str,
) -> Result<(Option<Id>, Option<Provider>)> {
    let own = choose_model(agent.outbound, config.model.as_ref().map(Id::as_str))?.name;
    let requested = match name {
        _ if OWN_MODEL.contains(&name) => own.clone(),
        _ => parse_model(api, name)?,
    };
    let provider = requested.served().map(|(provider, _)| provider);
    if requested == own {
        return Ok((None, provider));
    }
    let id = Id::parse(requested.to_string())
        .map_err(|reason| Error::invalid("model", format!("`model` {reason}.")))?;
    Ok((Some(id), provider))
}

/// Whether a request over the Responses API is sent to this model through the same API.
fn uses_responses(agent: &Agent<'_>, name: &str) -> Result<bool> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let (_, provider) = choose(agent, &config, ProviderApi::Responses, name)?;
    match provider {
        Some(Provider::OpenAi) => has_responses(agent.outbound),
        _ => Ok(false),
    }
}

/// Parses a model's name, with a provider (`openai:gpt-4o`) or as clients of this API write it.
fn parse_model(api: ProviderApi, name: &str) -> Result<ModelName> {
    let has_provider = name
        .split_once(':')
        .is_some_and(|(provider, _)| Provider::ALL.iter().any(|known| known.name() == provider));
    if name == "demo" || has_provider {
        ModelName::parse("model", name)
    } else {
        ModelName::parse("model", &format!("{}:{name}", api.provider().name()))
    }
}

/// Fields that don't affect a model of another provider, or that every model obeys.
const TRANSLATED: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "metadata",
    "user",
    "store",
    "stream_options",
    "parallel_tool_calls",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
];

/// Rejects a field that can't be translated for a model of another provider. The demo accepts all
/// fields, so that each client can be tried.
fn check_translated(fields: &JsonObject, provider: Option<Provider>) -> Result<()> {
    let Some(provider) = provider else {
        return Ok(());
    };
    let is_accepted = |name: &str, value: &RawValue| {
        let value = value.get();
        value == "null"
            || TRANSLATED.contains(&name)
            || (name == "tool_choice" && (value == r#""auto""# || value.contains(r#""auto""#)))
            || (name == "response_format" && value.contains(r#""text""#))
            || (name == "top_p" && matches!(value, "1" | "1.0"))
    };
    let fields = fields_of(fields.as_str());
    match fields
        .iter()
        .find(|(name, value)| !is_accepted(name, value))
    {
        None => Ok(()),
        Some((name, _)) => Err(Error::invalid(
            name,
            format!(
                "This model doesn't support `{name}`: its provider, {}, has a different API. Omit `{name}`, or choose a model whose provider has the API that you use.",
                provider.title()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::header_of;

    #[test]
    fn a_header_contains_only_visible_ascii() {
        assert_eq!(header_of("chat 42~"), Some("chat 42~"));
        for id in ["caf\u{e9}", "a\nb", "\u{7f}"] {
            assert_eq!(header_of(id), None, "{id:?}");
        }
    }
}
