//! Tables of hero.toml as structs.

/// Defines a table of hero.toml: its keys, each with its type and its default. `as "MODULE"` behind a type names the
/// functions that read and write it.
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
                $key:ident: $type:ty $(as $with:literal)? = $default:expr
                    => $kind:ident $(($($bound:expr),+))? $(, $flag:ident)*;
            )+
        } $(with { $($further:tt)+ })?
    ) => {
        $crate::toml_table::toml_table! {
            #[doc = concat!("The table `", $path, "` of hero.toml.")]
            pub struct $name {
                $(
                    #[doc = concat!("The key `", stringify!($key), "`; its row says more.")]
                    $(#[serde $serde])*
                    pub $key: $type $(as $with)? = $default,
                )+
                $($($further)+)?
            }
        }

        impl $name {
            $crate::key_row::key_table! {
                $(#[doc = $about])*
                TABLE = $path $(, $form)*;
                $( $(#[doc = $text])* $key: $kind $(($($bound),+))? $(, $flag)*; )+
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
        #[serde(default, deny_unknown_fields, expecting = "a table")]
        pub struct $name {
            $( $(#[$meta])* $(#[serde(with = $with)])? pub $key: $type, )+
        }

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
