//! The listing of a loadable block: a line for each document, for the prompt.

use super::skill::Skill;
use base::quoted::{Untrusted, quote};

/// The most bytes of a listing in the prompt.
const MAX_LISTING_BYTES: usize = 32 << 10;

/// The documents that a block's backend lists.
pub enum SkillListing {
    Skills(Vec<Skill>),
    /// A service's listing as text.
    Text(String),
}

impl SkillListing {
    /// The listing as the prompt shows it.
    pub fn render(&self) -> String {
        let skills = match self {
            SkillListing::Text(text) if text.trim().is_empty() => &Vec::new(),
            SkillListing::Text(text) => return cut_listing(text),
            SkillListing::Skills(skills) => skills,
        };
        if skills.is_empty() {
            return "No documents yet.".to_owned();
        }
        let mut text = String::new();
        for (index, skill) in skills.iter().enumerate() {
            let line = line_of(skill);
            if text.len() + line.len() > MAX_LISTING_BYTES {
                text.push_str(&format!("\n… and {} more", skills.len() - index));
                break;
            }
            if index > 0 {
                text.push('\n');
            }
            text.push_str(&line);
        }
        text
    }

    pub fn into_skills(self) -> Vec<Skill> {
        match self {
            SkillListing::Skills(skills) => skills,
            SkillListing::Text(_) => Vec::new(),
        }
    }
}

/// A document's line in a listing. If a tool or a file wrote the description, the line names it as
/// the source.
fn line_of(skill: &Skill) -> String {
    let key = quote(Untrusted::DocumentKey, &skill.key);
    let untrusted = skill.source.filter(|source| source.is_quoted());
    let source = untrusted.map(|source| format!(" (source: {})", source.name()));
    let source = source.unwrap_or_default();
    match &skill.description {
        Some(description) => {
            let description = quote(Untrusted::DocumentDescription, description);
            match untrusted {
                Some(_) => format!("- {key}{source} > {description}"),
                None => format!("- {key}: {description}"),
            }
        }
        None => format!("- {key}{source}"),
    }
}

fn cut_listing(text: &str) -> String {
    let cut = text.floor_char_boundary(MAX_LISTING_BYTES);
    let beginning = text.get(..cut).unwrap_or_default();
    if cut < text.len() {
        format!("{beginning}\n… and more")
    } else {
        beginning.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::skill::clip_description;
    use super::*;

    fn skill(key: &str, description: Option<&str>) -> Skill {
        Skill {
            key: key.to_owned(),
            description: description.map(str::to_owned),
            ..Skill::default()
        }
    }

    #[test]
    fn a_listing_has_a_line_per_document_and_marks_truncation() {
        assert_eq!(
            SkillListing::Skills(Vec::new()).render(),
            "No documents yet."
        );
        assert_eq!(
            SkillListing::Text(" ".to_owned()).render(),
            "No documents yet."
        );
        let listing = SkillListing::Skills(vec![skill("a", Some("First")), skill("b", None)]);
        assert_eq!(listing.render(), "- a: First\n- b");
        let long = SkillListing::Skills(vec![skill("a", Some(&"x".repeat(1_000))); 40]).render();
        assert!(long.len() < MAX_LISTING_BYTES + 100);
        assert!(
            long.ends_with("\n… and 8 more"),
            "{}",
            long.lines().last().unwrap()
        );
    }

    #[test]
    fn a_description_is_one_bounded_line() {
        assert_eq!(clip_description(" a\n b\tc "), "a b c");
        assert_eq!(clip_description(&"é".repeat(600)).chars().count(), 501);
    }
}
