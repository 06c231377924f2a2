//! Discovers how to get a server's authorization: the metadata of the server (RFC 9728) and
//! of its authorization server (RFC 8414, OpenID Connect Discovery).

use serde::Deserialize;

use crate::address::origin::origin_of;
use crate::tools::mcp::oauth::challenge::Challenge;
use crate::tools::mcp::oauth::documents::{find_document, unusable};
use base::error::Result;
use base::outbound::Outbound;

const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const SERVER_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";

/// The PKCE method that this client supports.
const S256: &str = "S256";

/// A server's metadata.
#[derive(Debug, Deserialize)]
pub struct ResourceMetadata {
    /// The server's own identifier, for which tokens are issued.
    pub resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    pub scopes_supported: Option<Vec<String>>,
}

/// An authorization server's metadata.
#[derive(Debug, Deserialize)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// Splits a URL into its origin and its path.
fn split(url: &str) -> Option<(String, &str)> {
    let origin = origin_of(url)?;
    let (_, rest) = url.split_once("://")?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let path = rest.get(at..)?.split('?').next()?;
    Some((origin, path.trim_end_matches('/')))
}

/// Whether a server at `url` may identify itself as `resource`: as its own URL, or as a
/// parent path. Otherwise a server could have tokens issued that are valid for another one.
fn may_be_called(url: &str, resource: &str) -> bool {
    let (Some((origin, path)), Some((named, above))) = (split(url), split(resource)) else {
        return false;
    };
    let below = path.strip_prefix(above);
    origin == named && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reads the metadata of the server at `url`, and of its authorization server.
pub async fn discover(
    outbound: &dyn Outbound,
    url: &str,
    challenge: &Challenge,
) -> Result<(ResourceMetadata, ServerMetadata)> {
    let resource = find_resource(outbound, url, challenge).await?;
    if !may_be_called(url, &resource.resource) {
        return Err(unusable("its metadata are those of another server"));
    }
    let issuer = resource.authorization_servers.first();
    let issuer = issuer.ok_or_else(|| unusable("its metadata name no authorization server"))?;
    let server = find_server(outbound, issuer).await?;
    Ok((resource, server))
}

async fn find_resource(
    outbound: &dyn Outbound,
    url: &str,
    challenge: &Challenge,
) -> Result<ResourceMetadata> {
    let (origin, path) = split(url).ok_or_else(|| unusable("its address is not a URL"))?;
    let candidates = match &challenge.metadata {
        Some(named) => vec![named.clone()],
        None if path.is_empty() => vec![format!("{origin}{RESOURCE_PATH}")],
        None => vec![
            format!("{origin}{RESOURCE_PATH}{path}"),
            format!("{origin}{RESOURCE_PATH}"),
        ],
    };
    for candidate in candidates {
        if let Some(found) = find_document(outbound, &candidate).await? {
            return Ok(found);
        }
    }
    // Servers of the revision 2025-03-26 have no metadata of their own.
    Ok(ResourceMetadata {
        resource: url.to_owned(),
        authorization_servers: vec![origin],
        scopes_supported: None,
    })
}

async fn find_server(outbound: &dyn Outbound, issuer: &str) -> Result<ServerMetadata> {
    let split = split(issuer);
    let (origin, path) =
        split.ok_or_else(|| unusable("its authorization server has no `https:` URL"))?;
    let candidates = if path.is_empty() {
        vec![
            format!("{origin}{SERVER_PATH}"),
            format!("{origin}{OPENID_PATH}"),
        ]
    } else {
        vec![
            format!("{origin}{SERVER_PATH}{path}"),
            format!("{origin}{OPENID_PATH}{path}"),
            format!("{origin}{path}{OPENID_PATH}"),
        ]
    };
    for candidate in candidates {
        let Some(found) = find_document::<ServerMetadata>(outbound, &candidate).await? else {
            continue;
        };
        // A server that impersonates another could have codes and tokens sent to itself.
        if found.issuer != issuer {
            return Err(unusable(
                "the authorization server's metadata name another issuer",
            ));
        }
        if !found
            .code_challenge_methods_supported
            .iter()
            .any(|method| method == S256)
        {
            return Err(unusable(
                "the authorization server doesn't support PKCE with S256",
            ));
        }
        if origin_of(&found.authorization_endpoint).is_none() {
            return Err(unusable("the address to open is not an `https:` URL"));
        }
        return Ok(found);
    }
    Err(unusable("the authorization server has no metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_matches_the_servers_url_or_a_parent_of_it() {
        let url = "https://a.example/one/mcp?x=1";
        for (resource, may) in [
            ("https://a.example/one/mcp", true),
            ("https://a.example/one/mcp/", true),
            ("https://a.example/one", true),
            ("https://a.example", true),
            ("https://A.example:443/", true),
            ("https://a.example/one/mc", false),
            ("https://a.example/one/mcp/more", false),
            ("https://b.example/one/mcp", false),
            ("http://a.example/one/mcp", false),
            ("urn:a", false),
        ] {
            assert_eq!(may_be_called(url, resource), may, "{resource}");
        }
    }
}
