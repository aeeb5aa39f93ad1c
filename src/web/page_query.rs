//! The parameters of an address. An unknown one is refused, as REST does: a page that ignored a misspelled filter would
//! show everything.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;

use super::web_error::{PageError, PageResult};
use crate::proto::member_names::member_names;
use crate::proto::text::shown;

pub(super) struct PageQuery<T>(pub(super) T);

impl<S: Sync, T: for<'de> Deserialize<'de>> FromRequestParts<S> for PageQuery<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> PageResult<Self> {
        check_names(&member_names::<T>(), parts.uri.query())?;
        let query = Query::<T>::try_from_uri(&parts.uri);
        let read = query.map_err(|error| PageError::wrong(format!("{}.", error.body_text())))?;
        Ok(Self(read.0))
    }
}

/// The parameters of a page that takes none.
pub(super) type NoQuery = PageQuery<NoParameters>;

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
        let names = member_names::<Asked>();
        assert_eq!(names, ["type", "page"]);
        assert_eq!(check_names(&names, Some("type=bash&page=2&")), Ok(()));
        assert_eq!(check_names(&names, None), Ok(()));
        let refused = check_names(&names, Some("page=2&late=true")).expect_err("no parameter");
        let message = "unknown parameter `late` in the address, which takes `type`, `page`";
        assert_eq!((refused.status.as_u16(), refused.text.as_str()), (400, message));
    }
}
