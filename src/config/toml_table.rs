//! Tables of hero.toml as structs.

use std::fmt;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};

/// Defines a table of hero.toml: its keys, each with its type and its default. `as "MODULE"` behind a type names the
/// functions that read and write it, `named "WORD"` before it the key of the file, if the field has another name.
///
/// A struct `in` a path has rows too: each key is its text as a comment and `KEY: TYPE = DEFAULT => KIND;`, and
/// `TABLE` has the rows, as of [`key_table`](super::key_row::key_table). Keys without a row stand behind `with`.
macro_rules! toml_table {
    (
        $(#[doc = $about:literal])*
        pub struct $name:ident in $path:literal $(, $form:ident)* {
            $(
                $(#[doc = $text:literal])*
                $(#[serde $serde:tt])*
                $key:ident $(named $word:literal)?: $type:ty $(as $with:literal)? = $default:expr
                    => $kind:ident $(($($bound:expr),+))? $(, $flag:ident)*;
            )+
        } $(with { $($further:tt)+ })?
    ) => {
        $crate::toml_table::toml_table! {
            pub struct $name {
                $(
                    $(#[serde $serde])*
                    $(#[serde(rename = $word)])?
                    pub $key: $type $(as $with)? = $default,
                )+
                $($($further)+)?
            }
        }

        impl $name {
            $crate::key_row::key_table! {
                $(#[doc = $about])*
                TABLE = $path $(, $form)*;
                $( $(#[doc = $text])* $key $(named $word)?: $kind $(($($bound),+))? $(, $flag)*; )+
            }
        }
    };
    (
        $(#[$of:meta])*
        pub struct $name:ident {
            $( $(#[$meta:meta])* pub $key:ident: $type:ty $(as $with:literal)? = $default:expr, )+
        }
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(remote = "Self", default, deny_unknown_fields, expecting = "a table")]
        pub struct $name {
            $( $(#[$meta])* $(#[serde(with = $with)])? pub $key: $type, )+
        }
        $crate::toml_table::only_as_table!($name);

        // No number with decimals of a legal table is unequal to itself.
        impl Eq for $name {}

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }
    };
}
pub(crate) use toml_table;

/// Implements the traits of serde for a struct with `#[serde(remote = "Self")]`. What is derived alone takes a list for a
/// table, its values in the order of the fields.
macro_rules! only_as_table {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$name>::deserialize($crate::toml_table::TableOnly(from))
            }
        }
    };
}
pub(crate) use only_as_table;

/// A value that has to be a table.
pub(crate) struct TableOnly<T>(pub(crate) T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for TableOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(TableOnly(visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for TableOnly<V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(to)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(entries)
    }
}
