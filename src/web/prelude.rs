//! The names that all pages use.

pub(in crate::web) use maud::{Markup, html};

pub(in crate::web) use super::fields::{Fields, NoQuery, PageQuery};
pub(in crate::web) use super::layout::{Nav, WebPage};
pub(in crate::web) use super::links::{SiteLinks, page_of};
pub(in crate::web) use super::live::{LivePart, LiveParts, filters_of};
pub(in crate::web) use super::snapshot::SiteSnapshot;
pub(in crate::web) use super::visit::Visit;
pub(in crate::web) use super::web_error::{PageError, PageResult};
