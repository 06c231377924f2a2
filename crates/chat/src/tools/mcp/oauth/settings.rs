//! The OAuth settings: the Worker's public URL, the key for encrypting tokens, and the
//! client that the operator registered for a server.

use serde::{Deserialize, Serialize};

use crate::address::origin::origin_of;
use crate::json_schema::JsonSchema;
use access::{MIN_SECRET_CHARS, SealingKey};
use base::error::{Code, Error, Result};
use base::json::optional_list;
use base::outbound::Outbound;
use base::settings::Setting;

/// The Worker's paths for the browser's redirect and for the client's metadata document.
pub const CALLBACK_PATH: &str = "/oauth/callback";
pub const CLIENT_PATH: &str = "/oauth/client.json";

/// The client's name, as people see it.
pub const CLIENT_NAME: &str = "Session Agent";

const MAX_CLIENT_ID_BYTES: usize = 2_000;
const MAX_SCOPES: usize = 64;
const MAX_SCOPE_BYTES: usize = 200;

/// The prefix of a value that references a secret.
const SECRET_PREFIX: &str = "secret:";

/// What a deployment needs to act as an OAuth client.
pub struct OAuthSettings {
    pub key: SealingKey,
    /// The Worker's URL, without a trailing slash.
    public_url: String,
}

impl OAuthSettings {
    pub fn read(outbound: &dyn Outbound) -> Result<Self> {
        let missing = |setting: Setting, what: &str| {
            Error::new(Code::NotConfigured, what).with("binding", setting.name())
        };
        let secret = outbound.find_setting(Setting::ToolTokenKey);
        let key = secret.as_deref().and_then(SealingKey::new);
        let key = key.ok_or_else(|| {
            missing(
                Setting::ToolTokenKey,
                &format!(
                    "The server requires an authorization, and this Worker has no key to store it. \
                     Set the secret `{}` to at least {MIN_SECRET_CHARS} random characters.",
                    Setting::ToolTokenKey.name()
                ),
            )
        })?;
        let url = outbound.find_setting(Setting::PublicUrl);
        let public_url = url.as_deref().and_then(origin_of);
        let public_url = public_url.ok_or_else(|| {
            missing(
                Setting::PublicUrl,
                &format!(
                    "The server requires an authorization, and this Worker doesn't know its own \
                     address. Set the variable `{}` to it, such as `https://memory.example.com`.",
                    Setting::PublicUrl.name()
                ),
            )
        })?;
        Ok(Self { key, public_url })
    }

    pub fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK_PATH}", self.public_url)
    }

    /// The URL of the client's metadata document. `None`: no authorization server could
    /// read it.
    pub fn client_document(&self) -> Option<String> {
        let is_public = self.public_url.starts_with("https://");
        is_public.then(|| format!("{}{CLIENT_PATH}", self.public_url))
    }

    /// Whether the browser is redirected to this machine.
    pub fn is_local(&self) -> bool {
        self.public_url.starts_with("http://")
    }
}

/// The client that the operator registered at the server's authorization server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuthClient {
    /// The client's id, if you registered one. Default: the agent describes its client at an
    /// address of the Worker, or registers it, as the authorization server supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[!-~]{1,2000}$"))]
    pub client_id: Option<String>,
    /// The client's secret, as `secret:NAME`. The variable `TOOL_SECRETS` must assign it to the
    /// authorization server's origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^secret:."))]
    pub client_secret: Option<String>,
    /// The scopes to ask for. Default: those that the server names.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_list::<_, _, 0, MAX_SCOPES>"
    )]
    #[schemars(length(max = MAX_SCOPES), inner(regex(pattern = "^[!-~]+$"), length(max = MAX_SCOPE_BYTES)))]
    pub scopes: Option<Vec<String>>,
}

impl OAuthClient {
    pub fn check(&self) -> Result<()> {
        let refused = |what: &str| Err(Error::invalid("oauth", what));
        let is_text = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if self
            .client_id
            .as_ref()
            .is_some_and(|id| !is_text(id, MAX_CLIENT_ID_BYTES))
        {
            return refused("`oauth.clientId` must be visible ASCII of at most 2000 bytes.");
        }
        if self.client_secret.is_some() && self.client_id.is_none() {
            return refused("`oauth.clientSecret` needs `oauth.clientId`.");
        }
        if self.client_secret.is_some() && self.secret_name().is_none() {
            return refused("`oauth.clientSecret` must be `secret:NAME`, a secret of the Worker.");
        }
        let mut scopes = self.scopes.iter().flatten();
        if scopes.any(|scope| !is_text(scope, MAX_SCOPE_BYTES)) {
            return refused("`oauth.scopes` must be scopes in visible ASCII of at most 200 bytes.");
        }
        Ok(())
    }

    /// The name of the client's secret among the Worker's secrets.
    pub fn secret_name(&self) -> Option<&str> {
        let name = self.client_secret.as_deref()?.strip_prefix(SECRET_PREFIX)?;
        (!name.is_empty()).then_some(name)
    }

    /// The client as it appears in a file.
    pub fn without_secret(self) -> Self {
        Self {
            client_secret: None,
            ..self
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
