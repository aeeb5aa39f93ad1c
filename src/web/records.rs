//! `/records`: the log records that brokers store; all of one root in the order of time.

use super::parts::{
    PageTable, empty, filter_choice, head, instant, or_any, pager, search, shortened, things,
    time_of,
};
use super::prelude::*;
use super::web_error::sentence;
use crate::amqp::logs::{LEVELS, LogCollection, LogPage, LogRecord, RecordQuery, chains};
use crate::amqp::message::MessageFailure;
use serde::Deserialize;

const ROWS: usize = 100;
/// The longest field of a record that is shown, in characters.
const SHOWN_MAX: usize = 400;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RecordFilter {
    root: String,
    chain: String,
    level: String,
    after: String,
}

impl RecordFilter {
    /// The newest records come first; the records of one root or chain as they happened.
    fn query(&self) -> RecordQuery {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        RecordQuery {
            root: given(&self.root),
            chain: given(&self.chain),
            level: given(&self.level),
            after: given(&self.after),
            limit: Some(ROWS),
            newest_first: self.root.is_empty() && self.chain.is_empty(),
            ..RecordQuery::default()
        }
    }

    /// Returns true for one root, whose records are shown chain by chain.
    fn is_tree(&self) -> bool {
        !self.root.is_empty() && self.chain.is_empty()
    }

    fn none(&self) -> &'static str {
        let Self { root, chain, level, after } = self;
        match (after.as_str(), [root, chain, level].iter().all(|of| of.is_empty())) {
            ("", true) => "No log records.",
            ("", false) => "No log record matches.",
            _ => "No further log records.",
        }
    }

    fn address(&self, links: &SiteLinks, after: &str) -> String {
        let (root, chain) = (("root", self.root.as_str()), ("chain", self.chain.as_str()));
        links.with("/records", &[root, chain, ("level", &self.level), ("after", after)])
    }
}

impl From<MessageFailure> for PageError {
    fn from(failure: MessageFailure) -> Self {
        let text = sentence(&failure.message);
        if failure.retryable { Self::away(text) } else { Self::wrong(text) }
    }
}

pub(super) async fn list(visit: Visit, PageQuery(filter): PageQuery<RecordFilter>) -> PageResult {
    visit.needs_no_bounds("read log records")?;
    let now = visit.snapshot().await?;
    let config = visit.site.config();
    let logs = LogCollection::new(visit.site.client.clone(), &config.amqp.logs, &config.osis)
        .ok_or_else(|| PageError::wrong("amqp.logs.context is illegal."))?;
    let LogPage { records, next } = logs.fetch(&filter.query()).await?;
    let links = visit.links();
    let further = |after: &str| filter.address(links, after);
    let main = html! {
        @if !filter.root.is_empty() || !filter.chain.is_empty() {
            p.crumb { a href=(links.to("/records")) { "Log records" } }
        }
        (head(&title(&filter), &line(&filter), &html! {}))
        (filters(&filter, links))
        @if records.is_empty() { (empty(&html! { (filter.none()) })) }
        @else if filter.is_tree() { (tree(&records, links)) }
        @else { (table(&records, links)) }
        (pager(&things(records.len() as u64, "record"), (&filter.after, next.as_deref()), further))
    };
    Ok(visit.page(&now, &WebPage::still("Log records", Nav::LogRecords, main)))
}

fn title(filter: &RecordFilter) -> String {
    match (filter.root.as_str(), filter.chain.as_str()) {
        ("", "") => "Log records".to_owned(),
        ("", chain) => format!("Chain {chain}"),
        (root, _) => format!("Root {root}"),
    }
}

fn line(filter: &RecordFilter) -> Markup {
    html! {
        @if filter.root.is_empty() && filter.chain.is_empty() {
            "Events of brokers and of programs that publish the key log, the newest first."
        } @else if filter.is_tree() {
            "Chain by chain, by the time of their first event."
        } @else {
            "In the order of time."
        }
    }
}

fn filters(filter: &RecordFilter, links: &SiteLinks) -> Markup {
    html! {
        form.filters action=(links.to("/records")) role="search" aria-label="Filter log records" {
            (search("root", "Root", "Root", &filter.root))
            (search("chain", "Chain", "Chain", &filter.chain))
            label {
                "Level "
                (filter_choice("level", or_any("all", LEVELS), &filter.level))
            }
            button { "Filter" }
        }
    }
}

fn tree(records: &[LogRecord], links: &SiteLinks) -> Markup {
    html! {
        ul.tree aria-label="Chains of the root" {
            @for (chain, of_chain) in chains(records) {
                li {
                    @if chain.is_empty() { span.id { "without a chain" } }
                    @else { a.id href=(links.with("/records", &[("chain", chain)])) { (shortened(chain, SHOWN_MAX)) } }
                    " " span.faint { (things(of_chain.len() as u64, "record")) }
                    ul { @for record in of_chain { (leaf(record)) } }
                }
            }
        }
    }
}

fn leaf(record: &LogRecord) -> Markup {
    let level = record.text("level");
    let colour = match level {
        "error" | "fatal" => "err",
        "warning" => "warn-t",
        _ => "dim",
    };
    html! {
        li {
            span.dim { (time(record)) } " " span class=(colour) { (level) } " "
            (text(record))
        }
    }
}

/// Returns the message of a record, and its fields that have no column.
fn text(record: &LogRecord) -> Markup {
    const COLUMNS: [&str; 5] = ["time", "level", "message", "root", "chain"];
    let others = record.fields.iter().filter(|(name, _)| !COLUMNS.contains(&name.as_str()));
    let others = others.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    });
    let others = others.collect::<Vec<_>>().join(" ");
    html! {
        (shortened(record.text("message"), SHOWN_MAX))
        @if !others.is_empty() { " " span.faint { (shortened(&others, SHOWN_MAX)) } }
    }
}

fn time(record: &LogRecord) -> Markup {
    let text = record.text("time");
    html! { @if let Some(time) = time_of(text) { (instant(time)) } @else { (text) } }
}

fn table(records: &[LogRecord], links: &SiteLinks) -> Markup {
    let linked = |record: &LogRecord, name: &str| {
        let id = record.text(name);
        html! { @if !id.is_empty() { a.id href=(links.with("/records", &[(name, id)])) { (shortened(id, 36)) } } }
    };
    PageTable::of(records, "nopick", "Log records")
        .column("Time", "dim m1", time)
        .column("Level", "m4", |of| html! { (of.text("level")) })
        .column("Message", "", text)
        .column("Root", "m5", |of| linked(of, "root"))
        .column("Chain", "wide", |of| linked(of, "chain"))
        .markup()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::logs::RecordProperties;
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn record_shows_its_fields_escaped_and_links_to_its_root() {
        let data =
            json!({ "message": "<b>up", "root": "r1", "broker": "rBroker", "level": "warn" });
        let record = LogRecord::of(&data, RecordProperties::default(), Timestamp::UNIX_EPOCH)
            .expect("legal");
        let text = table(&[record], &SiteLinks::new("/")).into_string();
        assert!(text.contains("warning") && text.contains("broker=rBroker"), "{text}");
        assert!(text.contains("/records?root=r1") && !text.contains("<b>"), "{text}");
    }

    #[test]
    fn a_root_is_a_tree_of_its_chains_in_the_order_in_which_they_begin() {
        let record = |chain: &str, message: &str| {
            let data =
                json!({ "message": message, "root": "r1", "chain": chain, "level": "error" });
            LogRecord::of(&data, RecordProperties::default(), Timestamp::UNIX_EPOCH).expect("legal")
        };
        let records =
            [record("r1.start", "one"), record("r1.end", "<b>two"), record("r1.start", "three")];
        let text = tree(&records, &SiteLinks::new("/")).into_string();
        let at =
            |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing: {text}"));
        assert!(at("chain=r1.start") < at("one") && at("three") < at("chain=r1.end"), "{text}");
        assert!(text.contains("2 records") && !text.contains("<b>"), "{text}");
    }

    #[test]
    fn records_of_a_root_come_as_they_happened_and_others_newest_first() {
        let of_root = RecordFilter { root: "r".to_owned(), ..RecordFilter::default() };
        assert!(!of_root.query().newest_first && RecordFilter::default().query().newest_first);
        let links = SiteLinks::new("/");
        assert_eq!(of_root.address(&links, "a b"), "/records?root=r&after=a%20b");
    }
}
