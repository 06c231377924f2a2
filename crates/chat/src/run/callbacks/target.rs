//! The receiver of a callback: a service binding, or a URL that the operator allows. The service
//! that writes summaries is checked here, too: a file may name one as a request may.

use crate::address::tool_address::check_url;
use base::error::{Error, Result};
use base::outbound::{CallFailure, Endpoint, Outbound};
use store::callbacks::CallbackTarget;
use store::config::ConfigureAgent;

/// The settings that name the receivers.
pub const TURN_END: &str = "onTurnEnd";
pub const MEMORY_CHANGE: &str = "onMemoryChange";

/// The endpoint of the callbacks in the configuration. It is checked again, because the operator's
/// list of origins may have become shorter.
pub fn endpoint_of(
    outbound: &dyn Outbound,
    setting: &str,
    target: Option<&CallbackTarget>,
) -> Result<Endpoint> {
    let target = target.ok_or_else(|| no_target(setting))?;
    match (&target.service, &target.url) {
        (Some(binding), None) => {
            if !outbound.is_bound(binding.as_str()) {
                return Err(CallFailure::not_configured(binding.as_str()));
            }
            Ok(Endpoint::Service {
                binding: binding.as_str().to_owned(),
                path: String::new(),
            })
        }
        (None, Some(url)) => {
            check_url(outbound, url, "url")?;
            Ok(Endpoint::Url(url.clone()))
        }
        _ => Err(no_target(setting)),
    }
}

/// The targets that a change of the configuration sets, with the names of their settings.
fn targets_of(change: &ConfigureAgent) -> impl Iterator<Item = (&'static str, &CallbackTarget)> {
    [
        (TURN_END, &change.on_turn_end),
        (MEMORY_CHANGE, &change.on_memory_change),
    ]
    .into_iter()
    .filter_map(|(setting, change)| Some((setting, change.given()?.as_ref()?)))
    // `{}` overrides a deployed default.
    .filter(|(_, target)| target.is_set())
}

/// Checks that no target names two receivers.
pub fn check_shapes(change: &ConfigureAgent) -> Result<()> {
    for (setting, target) in targets_of(change) {
        if target.service.is_some() && target.url.is_some() {
            return Err(no_target(setting));
        }
    }
    Ok(())
}

pub fn no_target(setting: &str) -> Error {
    Error::invalid(
        setting,
        format!("Set either `service` (a binding) or `url` in `{setting}`."),
    )
}

/// Checks that the agent may call the services and URLs that a change of the configuration names,
/// in a request or in a file.
pub fn check_targets(outbound: &dyn Outbound, change: &ConfigureAgent) -> Result<()> {
    for (setting, target) in targets_of(change) {
        let field = match target.url {
            Some(_) => format!("{setting}.url"),
            None => setting.to_owned(),
        };
        endpoint_of(outbound, setting, Some(target)).map_err(|error| error.with_field(field))?;
    }
    if let Some(Some(summarize)) = change.summarize.given()
        && let Some(binding) = &summarize.service
        && !outbound.is_bound(binding.as_str())
    {
        let error = CallFailure::not_configured(binding.as_str());
        return Err(error.with_field("summarize"));
    }
    Ok(())
}
