//! Values that are texts: in Redis, in the API, in files and on the command line.

/// Defines an enum whose variants have words, in one table. With what it is and the form of its words it can be
/// parsed, with `any_case` behind them in capital letters too.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (@is $one:expr, $text:expr, any_case) => { $one.eq_ignore_ascii_case($text) };
    (@is $one:expr, $text:expr) => { $one == $text };
    (
        $(#[$of:meta])*
        $name:ident $(, $what:literal, $form:literal $(, $case:ident)?)?;
        $( $(#[$meta:meta])* $variant:ident = $word:literal, )+
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
        pub enum $name {
            $( $(#[$meta])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// Every one, in this order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        $(
            impl std::str::FromStr for $name {
                type Err = $crate::target::IllegalName;

                fn from_str(text: &str) -> Result<Self, Self::Err> {
                    let is_meant = |one: &Self| $crate::words!(@is one.as_str(), text $(, $case)?);
                    let found = Self::ALL.into_iter().find(is_meant);
                    found.ok_or_else(|| Self::Err::new($what, text, $form))
                }
            }
        )?
    };
}
pub use crate::words;

/// Writes and reads types by serde as their `Display` and `FromStr` do.
#[doc(hidden)]
#[macro_export]
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        $crate::from_text!($type);
    )+};
}
pub use crate::as_text;

/// Reads types by serde as their `FromStr` does.
#[doc(hidden)]
#[macro_export]
macro_rules! from_text {
    ($($type:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub use crate::from_text;

/// Gives a type a JSON schema, a text without one, which stands where the type is used.
#[doc(hidden)]
#[macro_export]
macro_rules! inline_schema {
    ($type:ty) => { $crate::inline_schema!($type, { "type": "string" }); };
    ($type:ty, $schema:tt) => {
        impl $crate::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(
                _: &mut $crate::schemars::SchemaGenerator,
            ) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!($schema)
            }
        }
    };
}
pub use crate::inline_schema;
