//! A struct as its author wrote it.

use std::iter::Peekable;

use proc_macro::{Delimiter, TokenStream, TokenTree, token_stream::IntoIter};

type Tokens = Peekable<IntoIter>;

pub struct Struct {
    pub name: String,
    /// The name of the lifetime, with its mark.
    pub lifetime: Option<String>,
    pub denies_others: bool,
    /// Fields that are left out have the values of the struct's `Default`.
    pub has_default: bool,
    pub fields: Vec<Field>,
}

pub struct Field {
    pub name: String,
    /// The field's name in JSON.
    pub key: String,
    pub of_type: String,
    /// What the field is when it is left out. `None`: it may not be left out.
    pub default: Option<String>,
    /// The function that reads it.
    pub read_with: Option<String>,
    /// It is never read.
    pub is_skipped: bool,
    /// A text that stays where it is in the JSON, if nothing in it is escaped.
    pub is_borrowed_text: bool,
}

/// `name` or `name = "value"` in `#[serde(…)]`.
struct Attribute {
    name: String,
    value: Option<String>,
}

impl Struct {
    pub fn parse(item: TokenStream) -> Result<Self, String> {
        let mut tokens = item.into_iter().peekable();
        let attributes = attributes(&mut tokens)?;
        skip_visibility(&mut tokens);
        if word(&mut tokens)? != "struct" {
            return Err("FromJson reads structs. Enums derive Deserialize.".to_owned());
        }
        let name = word(&mut tokens)?;
        let lifetime = lifetime(&mut tokens)?;
        let Some(TokenTree::Group(body)) = tokens.next() else {
            return Err(format!("`{name}` has no named fields."));
        };
        if body.delimiter() != Delimiter::Brace {
            return Err(format!("`{name}` has no named fields."));
        }

        let (mut denies_others, mut has_default, mut is_camel_case) = (false, false, false);
        for Attribute { name, value } in attributes {
            match (name.as_str(), value.as_deref()) {
                ("deny_unknown_fields", None) => denies_others = true,
                ("default", None) => has_default = true,
                ("rename_all", Some("camelCase")) => is_camel_case = true,
                _ => return Err(format!("FromJson does not know `{name}` of a struct.")),
            }
        }
        let mut fields = Vec::new();
        let mut tokens = body.stream().into_iter().peekable();
        while tokens.peek().is_some() {
            fields.push(Field::parse(&mut tokens, is_camel_case)?);
        }
        if fields.len() > 64 {
            return Err(format!("`{name}` has more than 64 fields."));
        }
        Ok(Self {
            name,
            lifetime,
            denies_others,
            has_default,
            fields,
        })
    }
}

impl Field {
    fn parse(tokens: &mut Tokens, is_camel_case: bool) -> Result<Self, String> {
        let attributes = attributes(tokens)?;
        skip_visibility(tokens);
        let name = word(tokens)?;
        if !takes(tokens, ':') {
            return Err(format!("`{name}` has no type."));
        }
        let of_type = type_until_comma(tokens);

        let plain = name.trim_start_matches("r#");
        let mut field = Self {
            key: if is_camel_case {
                camel_case(plain)
            } else {
                plain.to_owned()
            },
            default: None,
            read_with: None,
            is_skipped: false,
            is_borrowed_text: false,
            name,
            of_type,
        };
        let mut is_borrowed = false;
        for Attribute { name, value } in attributes {
            match (name.as_str(), value) {
                ("rename", Some(key)) => field.key = key,
                ("default", None) => field.default = Some(DEFAULT.to_owned()),
                ("default", Some(function)) => field.default = Some(format!("{function}()")),
                ("deserialize_with", Some(function)) => field.read_with = Some(function),
                ("borrow", None) => is_borrowed = true,
                ("skip", None) => field.is_skipped = true,
                // These are for who writes the field.
                ("skip_serializing_if" | "serialize_with", Some(_)) => {}
                _ => return Err(format!("FromJson does not know `{name}` of a field.")),
            }
        }
        field.is_borrowed_text = is_borrowed && field.of_type.starts_with("Cow");
        if field.default.is_none()
            && field.read_with.is_none()
            && field.of_type.starts_with("Option")
        {
            field.default = Some("::core::option::Option::None".to_owned());
        }
        Ok(field)
    }
}

pub const DEFAULT: &str = "::core::default::Default::default()";

/// Reads the attributes before an item, and gives those of serde.
fn attributes(tokens: &mut Tokens) -> Result<Vec<Attribute>, String> {
    let mut found = Vec::new();
    while takes(tokens, '#') {
        let Some(TokenTree::Group(group)) = tokens.next() else {
            return Err("`#` without an attribute.".to_owned());
        };
        let mut inside = group.stream().into_iter();
        match (inside.next(), inside.next()) {
            (Some(TokenTree::Ident(name)), Some(TokenTree::Group(list)))
                if name.to_string() == "serde" =>
            {
                let mut list = list.stream().into_iter().peekable();
                while list.peek().is_some() {
                    found.push(Attribute::parse(&mut list)?);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

impl Attribute {
    fn parse(tokens: &mut Tokens) -> Result<Self, String> {
        let name = word(tokens)?;
        let value = match takes(tokens, '=') {
            true => Some(text(tokens)?),
            false => None,
        };
        takes(tokens, ',');
        Ok(Self { name, value })
    }
}

fn skip_visibility(tokens: &mut Tokens) {
    if matches!(tokens.peek(), Some(TokenTree::Ident(name)) if name.to_string() == "pub") {
        tokens.next();
        if matches!(tokens.peek(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
        {
            tokens.next();
        }
    }
}

/// Reads the generics of a struct: nothing, or one lifetime.
fn lifetime(tokens: &mut Tokens) -> Result<Option<String>, String> {
    if !takes(tokens, '<') {
        return Ok(None);
    }
    if !takes(tokens, '\'') {
        return Err("FromJson reads structs without generic types.".to_owned());
    }
    let name = word(tokens)?;
    match takes(tokens, '>') {
        true => Ok(Some(format!("'{name}"))),
        false => Err("FromJson reads structs with one lifetime at most.".to_owned()),
    }
}

/// Reads a type, and the comma that follows it.
fn type_until_comma(tokens: &mut Tokens) -> String {
    let mut depth = 0;
    let mut read = Vec::new();
    for token in tokens {
        match &token {
            TokenTree::Punct(mark) if mark.as_char() == '<' => depth += 1,
            TokenTree::Punct(mark) if mark.as_char() == '>' => depth -= 1,
            TokenTree::Punct(mark) if mark.as_char() == ',' && depth == 0 => break,
            _ => {}
        }
        read.push(token);
    }
    TokenStream::from_iter(read).to_string()
}

fn word(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.next() {
        Some(TokenTree::Ident(word)) => Ok(word.to_string()),
        Some(other) => Err(format!("FromJson expected a name, and not `{other}`.")),
        None => Err("FromJson expected a name.".to_owned()),
    }
}

/// The text of a literal without escapes, as attributes have them.
fn text(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.next().map(|token| token.to_string()) {
        Some(literal)
            if literal.len() >= 2 && literal.starts_with('"') && !literal.contains('\\') =>
        {
            Ok(literal.trim_matches('"').to_owned())
        }
        _ => Err("FromJson expected a text without escapes.".to_owned()),
    }
}

fn takes(tokens: &mut Tokens, mark: char) -> bool {
    let is_next = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == mark);
    if is_next {
        tokens.next();
    }
    is_next
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        all + &head.to_uppercase() + tail
    })
}
