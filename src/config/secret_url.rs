//! Addresses that may have a password in them.

/// Shows a url, and writes it, only as its method `redacted` tells it.
macro_rules! secret_url {
    ($name:ident) => {
        impl<T: Into<String>> From<T> for $name {
            fn from(url: T) -> Self {
                Self(url.into())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.redacted())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}
pub(crate) use secret_url;
