//! The addresses of resources: `memory://block/{label}` and
//! `memory://skill/{label}/{key}`.

use crate::route::decode;
use base::error::{Error, Result};
use base::percent::encode_percent;
use memory::label::Label;

/// The scheme of the agent's own resources.
pub const MEMORY: &str = "memory:";

pub const BLOCK: &str = "memory://block/";
pub const SKILL: &str = "memory://skill/";

/// The thing that an address names.
#[derive(Debug, PartialEq)]
pub enum Address {
    Block(Label),
    Skill { label: Label, key: String },
}

impl Address {
    /// `Ok(None)`: no resource has such an address.
    pub fn parse(uri: &str) -> Result<Option<Self>> {
        let label = |text: &str| {
            let text = decode("uri", text)?;
            Label::parse(&text)
                .map_err(|reason| Error::invalid("uri", format!("The label in `uri` {reason}.")))
        };
        if let Some(rest) = uri.strip_prefix(BLOCK) {
            return Ok(Some(Self::Block(label(rest)?)));
        }
        let Some((block, key)) = uri
            .strip_prefix(SKILL)
            .and_then(|rest| rest.split_once('/'))
        else {
            return Ok(None);
        };
        Ok(Some(Self::Skill {
            label: label(block)?,
            key: decode("uri", key)?,
        }))
    }
}

pub fn of_block(label: &Label) -> String {
    format!("{BLOCK}{}", encode_percent(label.as_str()))
}

pub fn of_skill(label: &Label, key: &str) -> String {
    format!(
        "{SKILL}{}/{}",
        encode_percent(label.as_str()),
        encode_percent(key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_uri_round_trips() {
        let label = Label::parse("Zu tun é").unwrap();
        assert_eq!(of_block(&label), "memory://block/Zu%20tun%20%C3%A9");
        let key = "a/b c?#%";
        assert_eq!(
            of_skill(&label, key),
            "memory://skill/Zu%20tun%20%C3%A9/a%2Fb%20c%3F%23%25"
        );
        let skill = Address::Skill {
            label: label.clone(),
            key: key.to_owned(),
        };
        assert_eq!(Address::parse(&of_skill(&label, key)), Ok(Some(skill)));
        assert_eq!(
            Address::parse(&of_block(&label)),
            Ok(Some(Address::Block(label)))
        );
        for unknown in [
            "",
            "memory://",
            "memory://skill/x",
            "file:///etc/passwd",
            "test://x",
        ] {
            assert_eq!(Address::parse(unknown), Ok(None), "{unknown}");
        }
        for wrong in [
            "memory://block/",
            "memory://block/%zz",
            "memory://block/a%2Fb",
            "memory://block/a\"b",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
