//! The code that reads a struct.

use crate::input::{DEFAULT, Field, Struct};

/// The path of what the loop needs, which all structs share.
const OBJECT: &str = "crate::base::json::object";

/// Implements serde's `Deserialize`, so that structs stand in types that serde reads.
pub fn implementation(of: &Struct) -> String {
    let name = &of.name;
    let given = given(of);
    let bounds = bounds(of);
    let read: Vec<&Field> = of.fields.iter().filter(|field| !field.is_skipped).collect();
    let names: String = read
        .iter()
        .map(|field| format!("{:?},", field.key))
        .collect();
    let required = read
        .iter()
        .enumerate()
        .filter(|(_, field)| is_required(of, field))
        .fold(0u64, |bits, (index, _)| bits | 1 << index);
    let denies_others = of.denies_others;
    let takes: String = read
        .iter()
        .enumerate()
        .map(|(index, field)| format!("{index} => {},", take(of, field)))
        .collect();
    let (begin, end) = match of.has_default {
        true => (
            format!("let mut __value: {name}{given} = {DEFAULT};"),
            "Ok(__value)".to_owned(),
        ),
        false => (
            of.fields.iter().map(|field| begin(of, field)).collect(),
            end(of),
        ),
    };
    format!(
        "#[automatically_derived]
        impl<{bounds}> ::serde::Deserialize<'de> for {name}{given} {{
            fn deserialize<__D: ::serde::Deserializer<'de>>(deserializer: __D) -> ::core::result::Result<Self, __D::Error> {{
                static NAMES: {OBJECT}::FieldNames = {OBJECT}::FieldNames {{
                    names: &[{names}],
                    required: {required},
                    denies_others: {denies_others},
                }};
                struct Object{given}(::core::marker::PhantomData<fn() -> {name}{given}>);
                impl<{bounds}> ::serde::de::Visitor<'de> for Object{given} {{
                    type Value = {name}{given};

                    fn expecting(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{
                        formatter.write_str({OBJECT}::AN_OBJECT)
                    }}

                    fn visit_map<__A: ::serde::de::MapAccess<'de>>(self, mut map: __A) -> ::core::result::Result<Self::Value, __A::Error> {{
                        let mut __fields = {OBJECT}::ObjectFields::of(&NAMES);
                        {begin}
                        loop {{
                            match __fields.next(&mut map)? {{
                                {takes}
                                _ => break,
                            }}
                        }}
                        {end}
                    }}
                }}
                deserializer.deserialize_struct({name:?}, NAMES.names, Object(::core::marker::PhantomData))
            }}
        }}"
    )
}

/// The struct's generics, as its name is followed by them.
fn given(of: &Struct) -> String {
    match &of.lifetime {
        Some(lifetime) => format!("<{lifetime}>"),
        None => String::new(),
    }
}

/// The generics of an implementation: what is borrowed is of the JSON.
fn bounds(of: &Struct) -> String {
    match &of.lifetime {
        Some(lifetime) => format!("'de: {lifetime}, {lifetime}"),
        None => "'de".to_owned(),
    }
}

fn is_required(of: &Struct, field: &Field) -> bool {
    !of.has_default && field.default.is_none()
}

/// Where a field's value is kept until all are read.
fn begin(of: &Struct, field: &Field) -> String {
    let Field { name, of_type, .. } = field;
    let name = name.trim_start_matches("r#");
    if field.is_skipped {
        return format!("let __{name}: {of_type} = {DEFAULT};");
    }
    match &field.default {
        Some(default) if !is_required(of, field) => {
            format!("let mut __{name}: {of_type} = {default};")
        }
        _ => format!(
            "let mut __{name}: ::core::option::Option<{of_type}> = ::core::option::Option::None;"
        ),
    }
}

/// Reads a field's value.
fn take(of: &Struct, field: &Field) -> String {
    let Field { name, of_type, .. } = field;
    let value = match &field.read_with {
        None if field.is_borrowed_text => format!("map.next_value_seed({OBJECT}::BorrowedText)?"),
        None => "map.next_value()?".to_owned(),
        Some(function) => {
            let (given, bounds) = (given(of), bounds(of));
            format!(
                "{{
                    struct Seed{given}(::core::marker::PhantomData<fn() -> {of_type}>);
                    impl<{bounds}> ::serde::de::DeserializeSeed<'de> for Seed{given} {{
                        type Value = {of_type};
                        fn deserialize<__D: ::serde::Deserializer<'de>>(self, deserializer: __D) -> ::core::result::Result<Self::Value, __D::Error> {{
                            {function}(deserializer)
                        }}
                    }}
                    map.next_value_seed(Seed(::core::marker::PhantomData))?
                }}"
            )
        }
    };
    let plain = name.trim_start_matches("r#");
    if of.has_default {
        format!("__value.{name} = {value}")
    } else if is_required(of, field) {
        format!("{OBJECT}::put(&mut __{plain}, {value})")
    } else {
        format!("__{plain} = {value}")
    }
}

/// The struct, of the values that were read.
fn end(of: &Struct) -> String {
    let name = &of.name;
    let plain = |field: &Field| field.name.trim_start_matches("r#").to_owned();
    let required: Vec<String> = of
        .fields
        .iter()
        .filter(|field| !field.is_skipped && is_required(of, field))
        .map(|field| format!("__{}", plain(field)))
        .collect();
    let fields: String = of
        .fields
        .iter()
        .map(|field| format!("{}: __{},", field.name, plain(field)))
        .collect();
    let value = format!("Ok({name} {{ {fields} }})");
    if required.is_empty() {
        return value;
    }
    let some: String = required
        .iter()
        .map(|name| format!("::core::option::Option::Some({name}),"))
        .collect();
    let all: String = required.iter().map(|name| format!("{name},")).collect();
    // `ObjectFields::next` has refused an object without one of them.
    format!("let ({some}) = ({all}) else {{ return Err({OBJECT}::not_read()); }}; {value}")
}
