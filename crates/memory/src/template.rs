//! Placeholders in a block's source: `{name}` is replaced by the agent's name, `{1}` to `{9}` for
//! the name's parts between colons. So one deployed definition gives each agent a backend of its
//! own.
//!
//! Whoever chooses an agent's name also chooses the text of a placeholder. So that text is at most
//! one step of a path, and is not expanded again.

/// Fills in the placeholders, once. A brace that begins no placeholder stays: a key that was stored
/// before there were templates may contain one.
pub fn expand(template: &str, agent_name: &str) -> Result<String, String> {
    let mut expanded = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, placeholder, after)) = split(rest) {
        expanded.push_str(before);
        expanded.push_str(placeholder.value(agent_name)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

pub fn has_placeholder(text: &str) -> bool {
    split(text).is_some()
}

/// Whether each brace is part of a placeholder.
pub fn is_sound(mut text: &str) -> bool {
    let has_brace = |text: &str| text.contains(['{', '}']);
    while let Some((before, _, after)) = split(text) {
        if has_brace(before) {
            return false;
        }
        text = after;
    }
    !has_brace(text)
}

enum Placeholder {
    Name,
    /// The number of a part, from 1.
    Part(usize),
}

impl Placeholder {
    fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            b"name" => Some(Self::Name),
            [digit @ b'1'..=b'9'] => Some(Self::Part(usize::from(digit - b'0'))),
            _ => None,
        }
    }

    /// The text of the placeholder for this agent, or the reason why there is none.
    fn value<'n>(&self, agent_name: &'n str) -> Result<&'n str, String> {
        let (who, value) = match self {
            Self::Name => ("this agent's name".to_owned(), Some(agent_name)),
            Self::Part(number) => (
                format!("part {number} of this agent's name"),
                agent_name.split(':').nth(number - 1),
            ),
        };
        match value {
            None => Err(format!("there is no {who}")),
            Some("") => Err(format!("{who} is empty")),
            Some("." | "..") => Err(format!("{who} is `.` or `..`")),
            Some(value) if value.contains(['/', '{']) => Err(format!("{who} contains `/` or `{{`")),
            Some(value) => Ok(value),
        }
    }
}

/// The first placeholder, with the texts before and after it.
fn split(text: &str) -> Option<(&str, Placeholder, &str)> {
    text.match_indices('{').find_map(|(start, _)| {
        let (before, from) = text.split_at_checked(start)?;
        let (inner, after) = from.strip_prefix('{')?.split_once('}')?;
        Some((before, Placeholder::parse(inner)?, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_replaced_once_and_other_braces_stay() {
        for (template, expected) in [
            ("user:{2}", "user:42"),
            ("{name}", "coder:42:x"),
            ("{1}{3}-{2}", "coderx-42"),
            ("plain", "plain"),
            ("{Name} {0} {10} {} {", "{Name} {0} {10} {} {"),
            ("{{1}}", "{coder}"),
            ("{a{1}", "{acoder"),
        ] {
            assert_eq!(expand(template, "coder:42:x").as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_missing_or_multi_segment_part_is_refused() {
        for (name, why) in [
            ("coder", "there is no part 2 of this agent's name"),
            ("coder:", "part 2 of this agent's name is empty"),
            ("coder:..", "part 2 of this agent's name is `.` or `..`"),
            ("coder:.", "part 2 of this agent's name is `.` or `..`"),
            (
                "coder:a/b",
                "part 2 of this agent's name contains `/` or `{`",
            ),
            (
                "coder:{1}",
                "part 2 of this agent's name contains `/` or `{`",
            ),
        ] {
            assert_eq!(expand("user:{2}", name).as_deref(), Err(&why.to_owned()));
        }
        assert_eq!(
            expand("{name}", "").as_deref(),
            Err(&"this agent's name is empty".to_owned())
        );
    }

    #[test]
    fn a_template_may_contain_only_known_placeholders() {
        for (text, sound) in [
            ("a", true),
            ("{1}{name}/{9}", true),
            ("{0}", false),
            ("{1", false),
            ("1}", false),
            ("{{1}}", false),
            ("{1}}", false),
        ] {
            assert_eq!(is_sound(text), sound, "{text}");
        }
    }
}
