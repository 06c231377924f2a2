//! Typed calls of every kind, as a program makes them.

use serde_json::{Value, json};
use session_agent_client::*;

pub async fn run(agent: &Agent) -> Result<Value> {
    let session = agent
        .call(&CreateSession::new().id("s").name("A tour"))
        .await?;
    let new_message = NewMessage::user("Penguins swim.").id("q");
    let appended = agent
        .call(&AppendMessage::new("s", new_message.clone()))
        .await?;
    let again = agent.call(&AppendMessage::new("s", new_message)).await?;
    let call = ToolCall::new("t", "look", Object::new());
    let events = vec![
        NewEvent::new(Action::ToolCallRequest).tool_calls(vec![call]),
        NewEvent::new(Action::ToolResult)
            .content("7")
            .tool_call_id("t")
            .tool_name("look"),
        NewEvent::new(Action::AgentMessage).content("Seven penguins."),
    ];
    let outcome = agent
        .call(&AppendEvents::new("s", events).expected_leaf_id("q"))
        .await?;
    let history = agent.call(&GetHistory::new("s").limit(10)).await?;
    let first = history.messages.first().cloned();
    let first = first.map(|message| UpdateMessage::new("s", message));
    let updated = match &first {
        Some(update) => agent.call(update).await?,
        None => None,
    };
    let found = agent
        .call(&Search::new().query("penguin").session_id("s"))
        .await?;

    let mut events = agent.items(LoadEvents::new("s").limit(2));
    let mut actions = Vec::new();
    while let Some(event) = events.next().await? {
        actions.push(event.action);
    }
    let mut messages = agent.items(GetHistory::new("s").limit(1));
    let mut texts = Vec::new();
    while let Some(message) = messages.next().await? {
        texts.push(message.text());
    }
    let mut changes = agent.items(GetChanges::new("s"));
    let mut kinds = Vec::new();
    while let Some(change) = changes.next().await? {
        kinds.push(change.r#type);
    }
    let mut lines = agent.export_session("s").await?.into_lines();
    let mut types = Vec::new();
    while let Some(line) = lines.next().await? {
        types.push(line.get("type").cloned());
    }

    let block = DefineBlock::new("memory", BlockKind::Writable).max_tokens(100);
    let block = agent.call(&block).await?;
    let written = SetBlock::new("memory", "Likes tea.").expected_version(block.version);
    let written = agent.call(&written).await?;
    let versions = agent.call(&GetBlockVersions::new("memory")).await?;
    agent
        .call(&DefineBlock::new("facts", BlockKind::Searchable))
        .await?;
    agent
        .call(&SetEntry::new("facts", "tea", "Tea is drunk at five."))
        .await?;
    let mut entries = agent.items(ListEntries::new("facts"));
    let entry = entries.next().await?;
    let facts = agent
        .call(&SearchContext::new().label("facts").query("tea"))
        .await?;
    let frozen = agent.call(&FreezePrompt::new().session_id("s")).await?;
    let context = BuildWorkingContext::new("s")
        .memory(true)
        .format(Provider::Openai);
    let context = agent.call(&context).await?;
    let tools = agent.call(&GetTools::new().session_id("s")).await?;

    agent
        .call(&ConfigureAgent::new().max_steps(3).temperature(0.5))
        .await?;
    let mut config = ConfigureAgent::new();
    config.max_steps = Some(None);
    let config = agent.call(&config).await?;
    let usage = AddUsage::new("s")
        .id("u")
        .input_tokens(5)
        .output_tokens(2)
        .cost(0.5);
    let used = agent.call(&usage).await?;
    let by_model = agent.call(&GetUsage::new(UsageGrouping::Model)).await?;
    let compacted = agent.call(&Compact::new("s").dry_run(true)).await?;
    let estimate = agent.call(&EstimateTokens::new("s")).await?;
    let turn = NewMessage::user("Hello").id("h");
    let turn = agent.call(&RunTurn::new("s", turn).model("demo")).await?;
    let stats = agent.call(&GetStats::new()).await?;
    let unresolved = agent.call(&GetSession::new("nowhere")).await?;
    let mut renamed = UpdateSession::new("s");
    renamed.name = Some(None);
    let renamed = agent.call(&renamed).await?;

    Ok(json!({
        "session": [session.id, session.name, renamed.name, unresolved.map(|session| session.id)],
        "inserted": [appended.inserted, again.inserted],
        "seqs": outcome.events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        "history": history.messages.iter().map(UiMessage::text).collect::<Vec<_>>(),
        "kept": updated == history.messages.first().cloned(),
        "found": found.results.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(),
        "actions": actions,
        "texts": texts,
        "kinds": kinds,
        "types": types,
        "versions": [block.version, written.version, versions.versions.len() as i64],
        "entry": entry.map(|entry| entry.content),
        "facts": facts.results.iter().map(|fact| &fact.key).collect::<Vec<_>>(),
        "promptHasBlock": frozen.prompt.contains("Likes tea."),
        "contextIsReady": context.model_input.is_some_and(|input| input.contains_key("messages")),
        "tools": tools.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        "config": [json!(config.max_steps), json!(config.temperature), json!(config.origins.max_steps)],
        "usage": [json!(used.usage.input_tokens), json!(used.usage.cost), json!(!by_model.usage.is_empty())],
        "compacted": compacted.reason,
        "hasEstimate": estimate.total > 0,
        "turn": [json!(turn.finish_reason), json!(turn.steps)],
        "hasStats": stats.database_bytes > 0,
    }))
}
