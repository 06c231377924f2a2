//! Reads what was deployed for every agent: the variable `AGENT_DEFAULTS`, a JSON object
//! with the fields of `configureAgent`.
//!
//! What is written wrong is left out, field by field, and `getConfig` names it. The rest
//! holds, and no conversation fails because of it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::api::operations::agent::check_change;
use crate::base::deployed::{Deployed, DeployedProblem};
use crate::base::error::{Error, Result};
use crate::base::json;
use crate::base::settings::Setting;
use crate::store::config::{ConfigLayer, ConfigureAgent};

/// `find` reads a setting of the Worker.
pub fn read(find: &dyn Fn(Setting) -> Option<String>) -> Deployed {
    let mut config = ConfigLayer::default();
    let mut problems = Vec::new();
    if let Some(text) = find(Setting::AgentDefaults) {
        let source = Setting::AgentDefaults.name();
        match json::parse::<BTreeMap<String, Box<RawValue>>>(text.as_bytes()) {
            Err(error) => problems.push(problem(source, "", error)),
            Ok(fields) => {
                for (name, value) in fields {
                    match read_setting(&name, &value) {
                        Ok(change) => config = change.apply(config),
                        Err(error) => problems.push(problem(source, &name, error)),
                    }
                }
            }
        }
    }
    Deployed::new(problems).with(config)
}

fn read_setting(name: &str, value: &RawValue) -> Result<ConfigureAgent> {
    let name = serde_json::Value::from(name);
    let change = json::parse(format!("{{{name}:{}}}", value.get()).as_bytes())?;
    check_change(&change)?;
    Ok(change)
}

fn problem(source: &str, field: &str, error: Error) -> DeployedProblem {
    let named = error.details.get("field").and_then(|field| field.as_str());
    let field = match named {
        None | Some("body") => field,
        Some(named) => named,
    };
    DeployedProblem {
        source: source.to_owned(),
        field: field.to_owned(),
        message: error.message.replace("The body", "The text"),
    }
}
