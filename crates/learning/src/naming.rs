//! Decides whether a person's words support a name: a key, a title, a tag. Pure.

use crate::evidence::{KeyTerms, is_supported_by};
use search::stem::stem;

/// Words that name the topic of a fact, and instruct nothing.
const TOPICS: &[&str] = &[
    "address",
    "age",
    "allergy",
    "allergies",
    "birthday",
    "book",
    "books",
    "brother",
    "car",
    "child",
    "children",
    "city",
    "colleague",
    "color",
    "colour",
    "company",
    "country",
    "diet",
    "drink",
    "drinks",
    "email",
    "family",
    "food",
    "friend",
    "friends",
    "goal",
    "goals",
    "habit",
    "habits",
    "health",
    "hobby",
    "hobbies",
    "home",
    "husband",
    "job",
    "language",
    "languages",
    "location",
    "music",
    "parents",
    "partner",
    "pet",
    "pets",
    "phone",
    "profession",
    "project",
    "projects",
    "residence",
    "role",
    "school",
    "seat",
    "seating",
    "sister",
    "size",
    "sport",
    "sports",
    "style",
    "team",
    "timezone",
    "travel",
    "wife",
    "work",
];

/// What a key such as `my-cat-s-name` contains in addition to the words of "my cat's name".
const POSSESSIVE: &str = "s";

/// Whether a name adds nothing to the text that it names, or to one sentence of what was said. The
/// model chose the name, and it is shown wherever the text is.
pub fn is_supported<'a>(
    name: &str,
    content: &str,
    texts: impl IntoIterator<Item = &'a str>,
) -> bool {
    let mut name = KeyTerms::of(name);
    for topic in TOPICS {
        name.stems.remove(&stem(topic));
    }
    name.stems.remove(POSSESSIVE);
    let text = KeyTerms::of(content);
    let adds_nothing = name.stems.is_subset(&text.stems) && (text.denies || !name.denies);
    !name.hides && (adds_nothing || is_supported_by(&name, texts))
}

#[cfg(test)]
mod tests {
    use super::is_supported;

    #[test]
    fn possessives_in_keys_may_be_spelled_in_any_form() {
        for relation in ["grandmother", "boss"] {
            let content = format!("For your information, my {relation}'s name is Ada.");
            for key in [
                "my-R-s-name",
                "my_R_s_name",
                "R-name",
                "R's name",
                "R’s name",
            ] {
                let key = key.replace('R', relation);
                assert!(is_supported(&key, &content, []), "{key}");
            }
            for key in [
                "my-neighbor-s-name",
                "R-x-name",
                "R-is-a-thief",
                "R-isn't-Ada",
            ] {
                let key = key.replace('R', relation);
                assert!(!is_supported(&key, &content, []), "{key}");
            }
        }
    }
}
