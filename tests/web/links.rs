//! The links of the pages: each leads to a page.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::requests::{send, signed_in};
use super::visitors::OPERATOR;
use super::world::PageWorld;

/// The pages of one kind that are opened.
const OF_KIND: usize = 4;

/// The addresses of a page's links.
fn links(body: &str) -> BTreeSet<String> {
    let values = body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages = values.filter(|value| value.starts_with('/') && !value.starts_with("/static/"));
    let plain = |value: &str| value.replace("&amp;", "&").replace("&#39;", "'");
    pages.map(|value| plain(value.split('#').next().unwrap_or_default())).collect()
}

/// The kind of a page: its path without names, and the names of its filters.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let parts: Vec<&str> = path.split('/').collect();
    let path: Vec<&str> = parts
        .iter()
        .enumerate()
        .map(|(place, part)| if place == 2 { "NAME" } else { part })
        .collect();
    let names: Vec<&str> =
        query.split('&').map(|one| one.split('=').next().unwrap_or("")).collect();
    format!("{}?{}", path.join("/"), names.join("&"))
}

#[test]
fn each_link_leads_to_a_page() {
    let world = PageWorld::start();
    let cookie = signed_in(&world.site, OPERATOR);
    let mut left = VecDeque::from([("/".to_owned(), String::new())]);
    let (mut seen, mut kinds) = (BTreeSet::new(), BTreeMap::new());
    let mut lost = Vec::new();
    while let Some((address, from)) = left.pop_front() {
        let opened: &mut usize = kinds.entry(kind(&address)).or_default();
        if *opened == OF_KIND || !seen.insert(address.clone()) {
            continue;
        }
        *opened += 1;
        let page = send(&world.site, "GET", &address, &cookie, "");
        if page.status != 200 {
            lost.push(format!("{} {address}, a link of {from}", page.status));
        }
        if page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            left.extend(links(&page.body).into_iter().map(|link| (link, address.clone())));
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    assert!(seen.len() > 40, "{seen:?}");
}
