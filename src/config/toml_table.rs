//! Tables of hero.toml as structs.

/// Defines a table of hero.toml: its keys, each with its type and its default.
macro_rules! toml_table {
    (
        $(#[$of:meta])*
        pub struct $name:ident {
            $( $(#[$meta:meta])* $seen:vis $key:ident: $type:ty = $default:expr, )+
        }
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields, expecting = "a table")]
        pub struct $name {
            $( $(#[$meta])* $seen $key: $type, )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }
    };
}
pub(crate) use toml_table;
