//! The front matter of a SKILL.md: `name` and `description` between two `---` lines. The
//! parser supports only the YAML that it uses: plain, quoted and folded values.

#[derive(Debug, Default, PartialEq)]
pub struct FrontMatter {
    pub name: Option<String>,
    pub description: Option<String>,
}

/// The most lines of front matter that are read.
const MAX_LINES: usize = 100;

impl FrontMatter {
    /// Reads a text's front matter. A text without it has no fields.
    pub fn read(text: &str) -> Self {
        let mut front = Self::default();
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        if lines.next().map(str::trim_end) != Some("---") {
            return front;
        }
        let lines: Vec<&str> = lines
            .take(MAX_LINES)
            .take_while(|line| line.trim_end() != "---")
            .collect();
        let mut rest = lines.as_slice();
        while let Some((line, after)) = rest.split_first() {
            rest = after;
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let indented = rest
                .iter()
                .take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty())
                .count();
            let (below, after) = rest.split_at_checked(indented).unwrap_or((rest, &[]));
            let field = match key {
                "name" => &mut front.name,
                "description" => &mut front.description,
                _ => continue,
            };
            rest = after;
            *field = Some(scalar(value, below)).filter(|text| !text.is_empty());
        }
        front
    }
}

/// A value as one line: the lines of a longer value are joined with spaces.
fn scalar(value: &str, below: &[&str]) -> String {
    let value = value.trim();
    let is_block = value.starts_with(['|', '>']);
    let first = if is_block { "" } else { value };
    let joined = std::iter::once(first)
        .chain(below.iter().map(|line| line.trim()))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if is_block {
        return joined;
    }
    unquote(&joined)
}

fn unquote(text: &str) -> String {
    let inside = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote))
    };
    if let Some(text) = inside('"') {
        text.replace("\\\"", "\"").replace("\\\\", "\\")
    } else if let Some(text) = inside('\'') {
        text.replace("''", "'")
    } else {
        // A comment starts after a space.
        text.split(" #")
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<String>, Option<String>) {
        let front = FrontMatter::read(text);
        (front.name, front.description)
    }

    #[test]
    fn front_matter_names_and_describes_a_skill() {
        let some = |text: &str| Some(text.to_owned());
        for (text, name, description) in [
            (
                "---\nname: deploy\ndescription: How to deploy\n---\nBody",
                some("deploy"),
                some("How to deploy"),
            ),
            ("---\r\nname: deploy\r\n---\r\n", some("deploy"), None),
            (
                "---\ndescription: \"Say \\\"hi\\\": now\"\n---",
                None,
                some("Say \"hi\": now"),
            ),
            ("---\ndescription: 'It''s one'\n---", None, some("It's one")),
            (
                "---\ndescription: >-\n  Two\n  lines\nname: x\n---",
                some("x"),
                some("Two lines"),
            ),
            (
                "---\ndescription: Two\n  lines\n---",
                None,
                some("Two lines"),
            ),
            (
                "---\nmetadata:\n  name: inner\nname: outer # which\n---",
                some("outer"),
                None,
            ),
            ("no head", None, None),
            ("---\nname:\n---", None, None),
            ("", None, None),
            ("text\n---\nname: no\n---", None, None),
        ] {
            assert_eq!(read(text), (name, description), "{text:?}");
        }
    }
}
