//! The end of an authorization: the person's browser has returned.

use sha2::{Digest as _, Sha256};

use crate::tools::mcp::listing::clean;
use crate::tools::mcp::oauth::settings::OAuthSettings;
use crate::tools::mcp::oauth::stored::{find_authorization, write_authorization};
use crate::tools::mcp::oauth::token::exchange_code;
use crate::tools::mcp::refresh::list_after_authorization;
use crate::tools::mcp::server::{ToolServer, change_state};
use crate::tools::registered::DeployedTools;
use crate::tools::rows::load_agent_tools;
use base::database::atomically;
use base::error::{Code, Error, Result};
use memory::Memory;

/// The most bytes of an authorization server's error that are shown.
const MAX_ERROR_BYTES: usize = 100;

/// The parameters of the browser's return.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Return {
    /// The server's name, from the state.
    pub server: String,
    /// The random part of the state.
    pub nonce: String,
    pub code: Option<String>,
    pub issuer: Option<String>,
    pub error: Option<String>,
}

/// Exchanges the code for tokens, stores them, and loads the server's tools.
pub async fn finish(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    returned: &Return,
) -> Result<()> {
    let settings = OAuthSettings::read(memory.outbound)?;
    let unknown = || {
        Error::invalid(
            "state",
            "This authorization is unknown, was used before, or has expired. Call \
             `defineTool` again to begin another one.",
        )
    };
    let server = find_server(memory, deployed, &returned.server)?.ok_or_else(unknown)?;
    let Some(url) = server.at.url() else {
        return Err(unknown());
    };
    // Each state is valid once, whatever the result.
    let pending = atomically(memory.db, || {
        let found = find_authorization(memory, &settings, &server.name, url)?;
        let mut authorization = found.ok_or_else(unknown)?;
        let is_this = |nonce: &str| Sha256::digest(nonce) == Sha256::digest(&returned.nonce);
        let pending = authorization.pending.take();
        let pending = pending
            .filter(|pending| is_this(&pending.nonce))
            .ok_or_else(unknown)?;
        write_authorization(memory, &settings, &server.name, &authorization)?;
        Ok(pending)
    })?;
    if pending.expires_at <= memory.host.now_ms() {
        return Err(unknown());
    }
    // The answer of another authorization server could be for another of its clients.
    let is_of_issuer = match &returned.issuer {
        Some(issuer) => *issuer == pending.client.issuer,
        None => !pending.names_issuer,
    };
    if !is_of_issuer {
        return Err(Error::invalid(
            "iss",
            "The answer is from another authorization server. Nothing was \
             authorized.",
        ));
    }
    if let Some(error) = &returned.error {
        let error = clean(error, MAX_ERROR_BYTES);
        let message = format!("The authorization server authorized nothing: {error}.");
        return Err(Error::new(Code::Forbidden, message).with_field("error"));
    }
    let code = returned.code.as_deref();
    let code = code.ok_or_else(|| Error::invalid("code", "`code` is missing."))?;
    let now_ms = memory.host.now_ms();
    let issued = exchange_code(memory.outbound, &pending, code, now_ms).await?;
    atomically(memory.db, || {
        // The server may have been removed or redefined in the meantime.
        let present = find_server(memory, deployed, &server.name)?;
        if present.and_then(|present| present.at.url().map(|now| now == url)) != Some(true) {
            return Err(unknown());
        }
        let found = find_authorization(memory, &settings, &server.name, url)?;
        let mut authorization = found.ok_or_else(unknown)?;
        authorization.grant = Some(issued);
        write_authorization(memory, &settings, &server.name, &authorization)
    })?;
    change_state(
        memory.db,
        (&server.name, server.defined_at),
        None,
        |state| {
            state.needs_authorization = None;
            Ok(())
        },
    )?;
    list_after_authorization(memory, deployed, &server).await
}

fn find_server(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    name: &str,
) -> Result<Option<ToolServer>> {
    let servers = load_agent_tools(memory.db, deployed)?.servers;
    Ok(servers.into_iter().find(|server| server.name == name))
}
