//! The fields of a form that was posted, after its token against forgery was checked, and the parameters of an address. An
//! unknown parameter is refused, as REST does: a page that ignored a misspelled filter would show everything.

use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use serde::Deserialize;

use super::links::SiteLinks;
use super::site::Site;
use super::visit::Visit;
use super::web_error::{PageError, PageResult};
use crate::proto::member_names::member_names;
use crate::rpc::unknown_parameter;

/// The fields of a form, in their order. The token against forgery was right.
#[derive(Debug, Clone)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Takes fields whose form had the right token.
    pub(super) fn of(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Returns the first value of a field; empty if it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value)
    }

    /// Returns the verb and the thing of a row whose button was pressed: the button has the verb as its name.
    pub(super) fn pressed<'a>(&'a self, verbs: &[&'a str]) -> Option<(&'a str, &'a str)> {
        let named = verbs.iter().map(|verb| (*verb, self.get(verb)));
        named.into_iter().find(|(_, thing)| !thing.is_empty())
    }

    /// Returns the verb and the things of a list that it is for: the one whose button was pressed, else those that were selected.
    pub(super) fn chosen<'a>(
        &'a self,
        verbs: &[&'a str],
        noun: &'a str,
    ) -> PageResult<(&'a str, Vec<&'a str>)> {
        if let Some((verb, thing)) = self.pressed(verbs) {
            return Ok((verb, vec![thing]));
        }
        let things: Vec<&str> = self.all(noun).collect();
        if things.is_empty() {
            return Err(PageError::wrong(format!("No {noun} is selected.")));
        }
        Ok((self.get("do"), things))
    }

    /// Returns the address of this site that the form returns to, without the prefix; else the page of it.
    pub(super) fn back<'a>(&'a self, links: &SiteLinks, page: &'a str) -> &'a str {
        let back = self.get("back");
        if links.safe(back).is_some() { back } else { page }
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
    }
}

impl FromRequest<Site> for Fields {
    type Rejection = PageError;

    async fn from_request(request: Request, site: &Site) -> PageResult<Self> {
        let visit = Visit::of(request.extensions())?;
        // A filter in the address of a form would be ignored, and the change be one of all jobs.
        check_names(&[], request.uri().query())?;
        let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, site)
            .await
            .map_err(|error| PageError::wrong(error.body_text()))?;
        let fields = Self(fields);
        if visit.is_forged(fields.get("csrf")) {
            return Err(PageError::forged());
        }
        Ok(fields)
    }
}

pub(super) struct PageQuery<T>(pub(super) T);

impl<S: Sync, T: for<'de> Deserialize<'de>> FromRequestParts<S> for PageQuery<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> PageResult<Self> {
        check_names(&member_names::<T>(), parts.uri.query())?;
        let wrong = |text: String| {
            let text = text.replace("Failed to deserialize query string", "The address is wrong");
            PageError::wrong(text.replace("missing field", "it lacks the parameter") + ".")
        };
        let query = Query::<T>::try_from_uri(&parts.uri);
        Ok(Self(query.map_err(|error| wrong(error.body_text()))?.0))
    }
}

/// The parameters of a page that takes none.
pub(super) type NoQuery = PageQuery<NoParameters>;

#[derive(Deserialize)]
pub(super) struct NoParameters {}

fn check_names(known: &[&str], query: Option<&str>) -> PageResult<()> {
    let refused = |(name, message): (String, String)| PageError::of_parameter(&name, message);
    unknown_parameter(known, query).map(refused).map_or(Ok(()), Err)
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
