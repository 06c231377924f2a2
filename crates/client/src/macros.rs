//! The macros that define the operations' types.

/// Defines an enum of strings. A string that this crate doesn't know yet is `Unknown`.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$meta])* $variant,)*
            /// A word that is newer than this crate.
            Unknown(String),
        }

        impl $name {
            /// The word, as the API writes it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    _ => Self::Unknown(word.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from(word.as_ref()))
            }
        }
    };
}

/// Defines a setter for each optional field. `or null`: the field is nullable, and `Some(None)`
/// sends `null`.
macro_rules! setters {
    ($name:ident: $($fields:tt)*) => {
        impl $name {
            setters! { @ $($fields)* }
        }
    };
    (@ or null $field:ident: $type:ty; $($more:tt)*) => {
        #[doc = concat!("Sends the field `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = Some(Some(Into::into($field)));
            self
        }

        setters! { @ $($more)* }
    };
    (@ $field:ident: $type:ty; $($more:tt)*) => {
        #[doc = concat!("Sends the field `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = Some(Into::into($field));
            self
        }

        setters! { @ $($more)* }
    };
    (@) => {};
}
