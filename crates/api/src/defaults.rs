//! Reads the settings deployed for every agent: the file `agent-defaults.json`, which the build
//! puts next to the module, and the variable `AGENT_DEFAULTS`. Each is a JSON object with the
//! fields of `configureAgent`, and `blocks`, `tools` and `compaction`. The variable `MEMORY_BLOCKS`
//! is an older name of `blocks`.
//!
//! A field of the variable overrides the same field of the file. An invalid field is ignored, and
//! `getConfig` reports it. The other fields apply, and no conversation fails.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use crate::operations::agent::{check_change, check_removals};
use crate::operations::chat_tools::DefineTool;
use crate::operations::compaction::ConfigureCompaction;
use base::deployed::{DeployedConfigProblem, PartReader};
use base::error::{Error, Result};
use base::json::{self, RawValue, find_nearest};
use base::outbound::Outbound;
use base::settings::Setting;
use chat::run::deployed::Deployed;
use chat::tools::registered::{DeployedTools, MAX_TOOLS, RegisteredTool};
use context::compaction::settings::OwnSettings;
use memory::deployed::{DeployedMemory, read_blocks};
use store::config::{ConfigLayer, ConfigureAgent, DeployedConfig};
use store::limits::Limits;

/// The file's name, next to wrangler.toml.
const FILE: &str = "agent-defaults.json";

const BLOCKS: &str = "blocks";
const TOOLS: &str = "tools";
const COMPACTION: &str = "compaction";
const LIMITS: &str = "limits";

/// A field of the defaults, and the variable or the file that contains it.
struct DefaultsField {
    source: &'static str,
    value: Box<RawValue>,
}

#[derive(Default)]
struct Defaults {
    fields: BTreeMap<String, DefaultsField>,
    problems: Vec<DeployedConfigProblem>,
    /// A source that can't be read, and that mentions `limits`.
    hides_limits: Option<&'static str>,
}

/// `file` is the text of the bundled file.
pub fn read(outbound: &dyn Outbound, file: Option<&str>) -> Deployed {
    let mut defaults = Defaults::default();
    if let Some(text) = file {
        defaults.read_object(FILE, text);
    }
    if let Some(text) = outbound.find_setting(Setting::MemoryBlocks) {
        defaults.read_field(Setting::MemoryBlocks.name(), BLOCKS, &text);
    }
    if let Some(text) = outbound.find_setting(Setting::AgentDefaults) {
        defaults.read_object(Setting::AgentDefaults.name(), &text);
    }
    defaults.read(outbound)
}

impl Defaults {
    /// Adds the fields of an object. They replace earlier ones of the same name.
    fn read_object(&mut self, source: &'static str, text: &str) {
        match json::parse::<BTreeMap<String, Box<RawValue>>>(text.as_bytes()) {
            Ok(fields) => {
                for (name, value) in fields {
                    self.fields.insert(name, DefaultsField { source, value });
                }
            }
            Err(error) => {
                if source != Setting::MemoryBlocks.name() && text.contains("\"limits\"") {
                    self.hides_limits = Some(source);
                }
                self.reader(source, "").note("", error);
            }
        }
    }

    /// Adds one field, whose value is a text by itself.
    fn read_field(&mut self, source: &'static str, name: &str, text: &str) {
        let object = format!("{{\"{name}\":{text}}}");
        self.read_object(source, &object);
    }

    fn reader<'a>(&'a mut self, source: &'a str, field: &'a str) -> PartReader<'a> {
        PartReader {
            source,
            field,
            problems: &mut self.problems,
        }
    }

    fn read(mut self, outbound: &dyn Outbound) -> Deployed {
        let mut config = ConfigLayer::default();
        let mut blocks = None;
        let mut tools = Vec::new();
        let mut compaction = OwnSettings::default();
        let mut limits_source = None;
        for (name, DefaultsField { source, value }) in std::mem::take(&mut self.fields) {
            if value.get() == "null" {
                continue;
            }
            let mut reader = self.reader(source, &name);
            match name.as_str() {
                BLOCKS => blocks = Some(read_blocks(&mut reader, &value)),
                TOOLS => tools = read_tools(&mut reader, &value, outbound),
                COMPACTION => compaction = read_compaction(&mut reader, &value),
                _ => match read_setting(&name, &value) {
                    Ok(change) => {
                        config = change.apply(config);
                        if name == LIMITS {
                            limits_source = Some(source);
                        }
                    }
                    Err(error) => {
                        reader.note("", error);
                        if find_nearest(&name, [LIMITS].into_iter()).is_some() {
                            self.hides_limits = Some(source);
                        }
                    }
                },
            }
        }
        if let Some(source) = self.hides_limits {
            config.limits = Some(Some(Limits::unreadable()));
            let message = "Agents without their own `limits` run no turns until these are valid.";
            let error = Error::invalid(LIMITS, message);
            self.reader(source, "").note("", error);
        } else if let (Some(source), Some(Some(limits))) = (limits_source, &config.limits) {
            let prices = config.prices.as_ref().and_then(Option::as_ref);
            if let Err(error) = limits.check_countable(prices, "limits.costPerDay") {
                self.reader(source, "").note("", error);
            }
        }
        let config = Rc::new(DeployedConfig {
            defaults: config,
            problems: self.problems,
        });
        Deployed {
            memory: DeployedMemory {
                config,
                blocks: blocks.unwrap_or_default(),
            },
            compaction,
            tools: DeployedTools(tools),
        }
    }
}

/// An object with only this field, as input for an operation.
fn object_of(name: &str, value: &RawValue) -> String {
    let name = serde_json::Value::from(name);
    format!("{{{name}:{}}}", value.get())
}

fn read_setting(name: &str, value: &RawValue) -> Result<ConfigureAgent> {
    let parsed = json::parse(object_of(name, value).as_bytes());
    let near = find_nearest(name, [BLOCKS, TOOLS, COMPACTION].into_iter());
    let change = match (parsed, near) {
        (Err(_), Some(near)) => {
            let message = format!("`{name}` is not a field here. Did you mean `{near}`?");
            return Err(Error::invalid(name, message));
        }
        (parsed, _) => parsed?,
    };
    check_change(&change)?;
    check_removals(&change, &ConfigLayer::default())?;
    Ok(change)
}

fn read_tools(
    reader: &mut PartReader<'_>,
    list: &RawValue,
    outbound: &dyn Outbound,
) -> Vec<RegisteredTool> {
    let mut names = HashSet::new();
    reader.items(list, MAX_TOOLS, |item| {
        let tool = json::parse::<DefineTool>(item.get().as_bytes())?.into_tool(outbound)?;
        if !names.insert(tool.definition.name.clone()) {
            let message = "Another tool already has this `name`.";
            return Err(Error::invalid("name", message));
        }
        Ok(tool)
    })
}

/// Reads each setting by itself, so that an invalid one affects no other.
fn read_compaction(reader: &mut PartReader<'_>, value: &RawValue) -> OwnSettings {
    let mut settings = OwnSettings::default();
    let fields = match json::parse::<BTreeMap<String, Box<RawValue>>>(value.get().as_bytes()) {
        Ok(fields) => fields,
        Err(error) => {
            reader.note(COMPACTION, error);
            return settings;
        }
    };
    for (name, value) in fields {
        let read = json::parse::<ConfigureCompaction>(object_of(&name, &value).as_bytes());
        match read.and_then(ConfigureCompaction::into_agents_settings) {
            Ok(newer) => settings = settings.with(newer),
            Err(error) => reader.note(COMPACTION, error),
        }
    }
    settings
}
