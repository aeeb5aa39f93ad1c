//! The parameters of an address. An unknown one is refused, as REST does: a page that ignored a misspelled filter would
//! show everything.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::value::Error as NoValue;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::web_error::{PageError, PageResult};
use crate::proto::text::shown;

/// The parameters of a page: the members of a struct.
pub(super) struct PageQuery<T>(pub(super) T);

impl<S: Sync, T: for<'de> Deserialize<'de>> FromRequestParts<S> for PageQuery<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> PageResult<Self> {
        check_names(&names_of::<T>(), parts.uri.query())?;
        let query = Query::<T>::try_from_uri(&parts.uri);
        let read = query.map_err(|error| PageError::wrong(format!("{}.", error.body_text())))?;
        Ok(Self(read.0))
    }
}

/// The parameters of a page that takes none.
#[derive(Deserialize)]
pub(super) struct NoParameters {}

fn check_names(known: &[&str], query: Option<&str>) -> PageResult<()> {
    let pairs = query.unwrap_or_default().split('&');
    let mut names = pairs.filter_map(|pair| pair.split('=').next()).filter(|it| !it.is_empty());
    match names.find(|name| !known.contains(name)) {
        Some(name) => {
            let name = shown(name);
            let takes = match known {
                [] => "none".to_owned(),
                known => format!("`{}`", known.join("`, `")),
            };
            let message = format!("unknown parameter `{name}` in the address, which takes {takes}");
            Err(PageError::of_parameter(&name, message))
        }
        None => Ok(()),
    }
}

/// Returns the names of the members of a struct, as addresses have them.
fn names_of<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    let mut names: &[&str] = &[];
    // It has no value: it only learns the names.
    let _ = T::deserialize(Names(&mut names));
    names.to_vec()
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom("it has no members"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = fields;
        Err(NoValue::custom("only the names of the members are asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Asked {
        #[serde(rename = "type")]
        _script_type: String,
        #[serde(rename = "page")]
        _page: String,
    }

    #[test]
    fn unknown_parameter_is_refused_with_the_known_ones() {
        let names = names_of::<Asked>();
        assert_eq!(names, ["type", "page"]);
        assert_eq!(check_names(&names, Some("type=bash&page=2&")), Ok(()));
        assert_eq!(check_names(&names, None), Ok(()));
        let refused = check_names(&names, Some("page=2&late=true")).expect_err("no parameter");
        let message = "unknown parameter `late` in the address, which takes `type`, `page`";
        assert_eq!((refused.status.as_u16(), refused.text.as_str()), (400, message));
    }
}
