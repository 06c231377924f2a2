//! The settings of the Worker: its secrets, variables and bindings, by name. Each
//! setting is one line of this list, and all code reads settings through this list.
//!
//! The default of a setting and the checks on its value are where the setting is read.
//! `docs/deploy.md` and `wrangler.toml` name every setting; a test compares them.

/// How the operator provides a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Secret,
    Variable,
    Binding,
}

macro_rules! settings {
    ($($variant:ident = $name:literal: $kind:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Setting {
            $($variant,)*
        }

        impl Setting {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The setting's name in the environment.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            pub const fn kind(self) -> SettingKind {
                match self {
                    $(Self::$variant => SettingKind::$kind,)*
                }
            }
        }
    };
}

settings! {
    SessionAgent = "SESSION_AGENT": Binding;
    SessionAgentToken = "SESSION_AGENT_TOKEN": Secret;
    SessionAgentTokenPrevious = "SESSION_AGENT_TOKEN_PREVIOUS": Secret;
    Auth = "AUTH": Variable;
    AllowedOrigins = "ALLOWED_ORIGINS": Variable;
    OAuthIssuer = "OAUTH_ISSUER": Variable;
    OAuthAudience = "OAUTH_AUDIENCE": Variable;
    OAuthAgents = "OAUTH_AGENTS": Variable;
    AgentDefaults = "AGENT_DEFAULTS": Variable;
    MemoryBlocks = "MEMORY_BLOCKS": Variable;
    SkillsBucket = "SKILLS_BUCKET": Binding;
    BackupBucket = "BACKUP_BUCKET": Binding;
    Ai = "AI": Binding;
    Directory = "DIRECTORY": Binding;
    Model = "MODEL": Variable;
    ModelWait = "MODEL_WAIT": Variable;
    OpenAiBaseUrl = "OPENAI_BASE_URL": Variable;
    OpenAiApi = "OPENAI_API": Variable;
    OpenAiApiKey = "OPENAI_API_KEY": Secret;
    AnthropicBaseUrl = "ANTHROPIC_BASE_URL": Variable;
    AnthropicApiKey = "ANTHROPIC_API_KEY": Secret;
    EmbeddingModel = "EMBEDDING_MODEL": Variable;
    ToolOrigins = "TOOL_ORIGINS": Variable;
    ToolSecrets = "TOOL_SECRETS": Variable;
    PublicUrl = "PUBLIC_URL": Variable;
    ToolTokenKey = "TOOL_TOKEN_KEY": Secret;
    RequestLog = "REQUEST_LOG": Variable;
    Metrics = "METRICS": Binding;
    OtelEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT": Variable;
    OtelHeaders = "OTEL_EXPORTER_OTLP_HEADERS": Secret;
    OtelServiceName = "OTEL_SERVICE_NAME": Variable;
    OtelTracesSampler = "OTEL_TRACES_SAMPLER": Variable;
    OtelTracesSamplerArg = "OTEL_TRACES_SAMPLER_ARG": Variable;
    OtelCaptureContent = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": Variable;
}

/// Whether a name is one of the Worker's own settings, such as its secret or a
/// provider's key.
pub fn is_own_setting(name: &str) -> bool {
    Setting::ALL.iter().any(|setting| setting.name() == name)
}

/// Whether a binding is the Worker's own, which a caller may not use as a service.
pub fn is_own_binding(name: &str) -> bool {
    Setting::ALL
        .iter()
        .any(|setting| setting.kind() == SettingKind::Binding && setting.name() == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    fn read(file: &str) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        fs::read_to_string(format!("{root}/{file}")).unwrap()
    }

    #[test]
    fn the_deployment_guide_documents_each_setting() {
        let guide = read("docs/deploy.md");
        let (_, section) = guide.split_once("\n## Settings\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented: BTreeMap<&str, SettingKind> = rows
            .map(|row| {
                let (name, rest) = row.split_once("` | ").unwrap();
                let kind = match rest {
                    rest if rest.starts_with("secret") => SettingKind::Secret,
                    rest if rest.starts_with("variable") => SettingKind::Variable,
                    _ => SettingKind::Binding,
                };
                (name, kind)
            })
            .collect();
        let there = Setting::ALL.iter();
        let there = there.map(|setting| (setting.name(), setting.kind()));
        assert_eq!(
            documented,
            there.collect(),
            "left: docs/deploy.md, Settings"
        );
    }

    #[test]
    fn the_configuration_lists_each_binding_and_setting() {
        let configuration = read("wrangler.toml");
        let is_comment = |line: &&str| line.starts_with('#');
        let (comments, lines): (Vec<&str>, Vec<&str>) = configuration.lines().partition(is_comment);
        for setting in Setting::ALL {
            let name = setting.name();
            let is_documented = match setting.kind() {
                SettingKind::Secret => {
                    let begins = format!("#   {name} ");
                    comments.iter().any(|line| line.starts_with(&begins))
                }
                SettingKind::Variable => {
                    let begins = format!("#   {name} = ");
                    comments.iter().any(|line| line.starts_with(&begins))
                }
                SettingKind::Binding => {
                    let named = ["binding", "name"].map(|key| format!("{key} = \"{name}\""));
                    // Settings that need a resource or cost rows are listed as comments, to be
                    // uncommented.
                    let bound = lines.iter().chain(&comments);
                    let mut bound = bound.map(|line| line.trim_start_matches("# "));
                    bound.any(|line| named.iter().any(|named| line == named))
                }
            };
            assert!(is_documented, "{name} is not in wrangler.toml");
        }
    }
}
