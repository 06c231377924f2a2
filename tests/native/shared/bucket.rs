//! A bucket with documents.

use crate::Alice;

pub fn with_bucket(objects: &[(&str, &str, Option<&str>)]) -> Alice {
    let alice = Alice::with_session();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("SKILLS_BUCKET".to_owned());
    *alice.outbound.bucket.borrow_mut() = Some(
        objects
            .iter()
            .map(|(key, content, description)| {
                let description = description.map(str::to_owned);
                ((*key).to_owned(), ((*content).to_owned(), description))
            })
            .collect(),
    );
    alice
}
