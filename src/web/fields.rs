//! The fields of a form that was posted, after its token against forgery was checked.

use axum::Form;
use axum::extract::{FromRequest, Request};

use super::links::SiteLinks;
use super::site::Site;
use super::visit::Visit;
use super::web_error::{PageError, PageResult};

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
