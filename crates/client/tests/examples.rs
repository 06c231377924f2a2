//! The example of each operation in the API's document is what its struct reads and writes.
//!
//! `node scripts/crate.mjs` writes this file.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_macros,
    reason = "a test may panic"
)]

use serde::de::DeserializeOwned;
use serde_json::Value;
use session_agent_client::*;

fn holds<O: Operation + DeserializeOwned>(api: &Value) {
    let path = format!("/agents/session-agent/{{agent}}/rpc/{}", O::NAME);
    let body = &api["paths"][&path]["post"]["requestBody"]["content"]["application/json"];
    let example = &body["example"];
    assert!(example.is_object(), "{path}");
    let read: O = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), example, "{path}");
}

#[test]
fn every_example_is_read_and_written_again() {
    let api = std::fs::read("../../generated/openapi.json").unwrap();
    let api: Value = serde_json::from_slice(&api).unwrap();
    holds::<AddCompaction>(&api);
    holds::<AddUsage>(&api);
    holds::<AppendEvents>(&api);
    holds::<AppendMessage>(&api);
    holds::<AppendToBlock>(&api);
    holds::<ApplyRetention>(&api);
    holds::<Backup>(&api);
    holds::<BuildWorkingContext>(&api);
    holds::<CallTool>(&api);
    holds::<CancelTurn>(&api);
    holds::<ClearBlocks>(&api);
    holds::<ClearMessages>(&api);
    holds::<Compact>(&api);
    holds::<ConfigureAgent>(&api);
    holds::<ConfigureCompaction>(&api);
    holds::<CreateSession>(&api);
    holds::<DefineBlock>(&api);
    holds::<DefineTool>(&api);
    holds::<DeleteCompaction>(&api);
    holds::<DeleteEntry>(&api);
    holds::<DeleteEvents>(&api);
    holds::<DeleteMessages>(&api);
    holds::<DeleteSession>(&api);
    holds::<DeleteSkill>(&api);
    holds::<Destroy>(&api);
    holds::<Erase>(&api);
    holds::<EraseAgents>(&api);
    holds::<EstimateTokens>(&api);
    holds::<FindMentions>(&api);
    holds::<ForkSession>(&api);
    holds::<FreezePrompt>(&api);
    holds::<GetBlock>(&api);
    holds::<GetBlockVersions>(&api);
    holds::<GetBlocks>(&api);
    holds::<GetBranches>(&api);
    holds::<GetChanges>(&api);
    holds::<GetCompactions>(&api);
    holds::<GetConfig>(&api);
    holds::<GetEntry>(&api);
    holds::<GetHistory>(&api);
    holds::<GetLatestLeaf>(&api);
    holds::<GetMessage>(&api);
    holds::<GetPathLength>(&api);
    holds::<GetReminder>(&api);
    holds::<GetSession>(&api);
    holds::<GetStats>(&api);
    holds::<GetTools>(&api);
    holds::<GetUsage>(&api);
    holds::<ListAgents>(&api);
    holds::<ListBackups>(&api);
    holds::<ListEntries>(&api);
    holds::<ListSessions>(&api);
    holds::<ListSkills>(&api);
    holds::<ListTools>(&api);
    holds::<LoadEvents>(&api);
    holds::<LoadForeignRows>(&api);
    holds::<LoadSkill>(&api);
    holds::<MintToken>(&api);
    holds::<PersistWorkingContext>(&api);
    holds::<PutSkill>(&api);
    holds::<RefreshPrompt>(&api);
    holds::<RemoveBlock>(&api);
    holds::<RemoveTool>(&api);
    holds::<RenderPrompt>(&api);
    holds::<RevertBlock>(&api);
    holds::<RunTurn>(&api);
    holds::<Search>(&api);
    holds::<SearchAgents>(&api);
    holds::<SearchContext>(&api);
    holds::<SetBlock>(&api);
    holds::<SetEntry>(&api);
    holds::<SetLeaf>(&api);
    holds::<UnloadSkill>(&api);
    holds::<UpdateMessage>(&api);
    holds::<UpdateSession>(&api);
    holds::<UpsertMessage>(&api);
    holds::<VerifyReceipt>(&api);
}
