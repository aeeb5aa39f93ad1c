//! `/brokers`: the brokers of RabbitMQ with their messages, and the dead letters of each queue.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::parts::{PageTable, Paged, ago, bar, count, empty, head, sign, things};
use super::prelude::*;
use crate::store::BrokerPresence;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct BrokerPage {
    page: String,
}

pub(super) async fn list(visit: Visit, PageQuery(asked): PageQuery<BrokerPage>) -> PageResult {
    visit.needs_no_bounds("see brokers")?;
    let now = visit.snapshot().await?;
    let paged = Paged::of(&asked.page, now.snapshot.brokers.len());
    let address = |page: &str| visit.links().with("/brokers", &[("page", page)]);
    let main = html! {
        (head("Brokers", &headline(&now), &html! {}))
        (whole(&now, paged))
        (paged.line("broker", address))
    };
    Ok(visit.page(&now, &WebPage::live("Brokers", Nav::Brokers, main)))
}

pub(super) fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> Vec<LivePart> {
    if visit.is_bound() {
        return Vec::new();
    }
    let asked: BrokerPage = filters_of(query);
    let paged = Paged::of(&asked.page, now.snapshot.brokers.len());
    vec![LivePart::headline(&headline(now)), LivePart::whole("brokers", whole(now, paged))]
}

/// Returns the section of the overview, which is empty without brokers.
pub(super) fn section(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = format!("All {}", things(now.snapshot.brokers.len() as u64, "broker"));
    let href = links.to("/brokers");
    html! {
        section #brokers-now {
            @if !now.snapshot.brokers.is_empty() {
                (bar("Brokers", "", Some((&all, &href))))
                p { (headline(now)) }
            }
        }
    }
}

fn headline(now: &SiteSnapshot) -> Markup {
    let snapshot = &now.snapshot;
    let sum = |of: fn(&BrokerPresence) -> u64| snapshot.live_brokers().map(of).sum::<u64>();
    let (consuming, all) = (sum(|of| of.consuming), sum(|of| of.dispatchers));
    let letters: u64 = snapshot.amqp_dead_letters().values().sum();
    html! {
        (count(snapshot.live_brokers().count() as u64)) " live. " (count(consuming)) " of " (count(all))
        " dispatchers consume, " (things(sum(|of| of.in_work), "message")) " in work, "
        (things(letters, "dead letter")) " in RabbitMQ."
    }
}

fn whole(now: &SiteSnapshot, paged: Paged) -> Markup {
    let brokers = &now.snapshot.brokers;
    html! {
        div #brokers {
            @if brokers.is_empty() {
                (empty(&html! { "No broker runs. Start one: " code { "systemctl start hero@broker" } }))
            } @else {
                (table(&brokers[paged.range()], now.snapshot.at))
                (ends(brokers))
                (dead_letters(now))
            }
        }
    }
}

fn table(brokers: &[BrokerPresence], at: Timestamp) -> Markup {
    PageTable::of(brokers, "nopick", "Brokers")
        .column("Broker", "m1", |of| html! {
            span.id { (of.unit) }
            @if let Some(node) = &of.node { " " span.faint { "node " (node) } }
        })
        .column("State", "mr", state)
        .column("Machine", "wide", |of| html! { (of.host) " " span.faint { (of.pid) } })
        .column("Dispatchers", "num m4", |of| html! {
            (count(of.consuming)) " of " (count(of.dispatchers)) span.only-n.faint { " dispatchers" }
        })
        .column("In work", "num m5", |of| html! { (count(of.in_work)) span.only-n.faint { " in work" } })
        .column("In the spool", "num wide", |of| html! { (count(of.spooled)) })
        .column("Events lost", "num wide", |of| bad_count(of.log_events_lost))
        .column("Heartbeat", "num wide", |of| match Timestamp::from_microsecond(of.at_us) {
            // A healthy row does not change each second.
            Ok(seen) if !of.is_alive => ago(seen, at),
            _ => html! { span.faint { "now" } },
        })
        .markup()
}

/// Returns the number of what nobody wants, in the colour of errors.
fn bad_count(number: u64) -> Markup {
    html! { @if number > 0 { span.err { (count(number)) } } @else { "0" } }
}

fn state(of: &BrokerPresence) -> Markup {
    if !of.is_alive {
        return sign("error", "error", "gone");
    }
    if of.outages.is_empty() && of.consuming >= of.dispatchers {
        return html! { span.faint { "live" } };
    }
    let away = of.outages.iter().map(|(name, seconds)| format!("{name} away for {seconds} s"));
    let away = away.collect::<Vec<_>>().join(", ");
    sign("warn", "warn", if away.is_empty() { "waits" } else { &away })
}

/// The messages of all brokers since their starts, by key and end.
fn ends(brokers: &[BrokerPresence]) -> Markup {
    const ENDS: [&str; 4] = ["job", "done", "retried", "dead"];
    let mut keys: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for (key, ends) in brokers.iter().flat_map(|of| &of.messages) {
        let sums = keys.entry(key).or_default();
        for (sum, end) in sums.iter_mut().zip(ENDS) {
            *sum += ends.get(end).copied().unwrap_or_default();
        }
    }
    let keys: Vec<_> = keys.into_iter().collect();
    let mut table = PageTable::of(&keys, "nopick", "Messages by key and end").column(
        "Key",
        "m1",
        |(key, _)| html! { span.id { (key) } },
    );
    let columns =
        [("Jobs", " became jobs"), ("Done", " done"), ("Retried", " retried"), ("Dead", " dead")];
    for (place, (title, word)) in columns.into_iter().enumerate() {
        table = table.column(title, "num m4", move |(_, sums)| {
            html! { (count(sums[place])) span.only-n.faint { (word) } }
        });
    }
    html! {
        section aria-labelledby="messages-title" {
            div.bar { h2 #messages-title { "Messages " small { "since the brokers started" } } }
            (table.markup())
        }
    }
}

fn dead_letters(now: &SiteSnapshot) -> Markup {
    let letters: Vec<(&str, u64)> = now.snapshot.amqp_dead_letters().into_iter().collect();
    let table = PageTable::of(&letters, "nopick", "Dead letters by queue")
        .column("Queue", "m1", |(queue, _)| html! { span.id { (queue) } })
        .column("Dead letters", "num mr", |(_, number)| {
            html! {
                (bad_count(*number)) span.only-n.faint { " dead letters" }
            }
        });
    html! {
        section aria-labelledby="letters-title" {
            div.bar { h2 #letters-title { "Dead letters of RabbitMQ " small { "hero amqp dlq list" } } }
            (table.markup())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::site_snapshot;
    use super::*;

    #[test]
    fn brokers_show_what_they_lack_and_the_latest_count_of_dead_letters() {
        let mut now = site_snapshot();
        let broker = |unit: &str, at_us, letters| BrokerPresence {
            unit: unit.to_owned(),
            host: "<b>one".to_owned(),
            dispatchers: 4,
            consuming: 4,
            messages: BTreeMap::from([(
                "rec.read".to_owned(),
                BTreeMap::from([("done".to_owned(), 7)]),
            )]),
            dead_letters: BTreeMap::from([("prod_rec.read".to_owned(), letters)]),
            at_us,
            is_alive: true,
            ..BrokerPresence::default()
        };
        let mut away = broker("broker-b", 2, 5);
        away.outages.insert("redis".to_owned(), 12);
        now.snapshot.brokers = vec![broker("broker-a", 1, 9), away];
        let text = whole(&now, Paged::of("", 2)).into_string();
        assert!(text.contains("redis away for 12 s") && !text.contains("<b>"), "{text}");
        assert!(text.contains(">14<") && text.contains(">5<") && !text.contains(">9<"), "{text}");
        let line = headline(&now).into_string();
        assert!(line.contains("8 of 8 dispatchers consume") && line.contains("5 dead letters"));
    }
}
