//! Brokers of RabbitMQ: gone, without a server, idle dispatchers, dead letters, lost log events.

use std::time::Duration;

use super::{Found, HealthRules, ProblemKind, Severity, Subject, reached};
use crate::proto::text::{counted, shown};
use crate::proto::units::{brief, format_duration};
use crate::store::BrokerPresence;
use crate::view::Snapshot;

/// A loss of log events is reported for this time.
const LOSS_TOLD: Duration = Duration::from_hours(1);

/// Each broker, and the dead letters of each queue.
pub(super) fn all(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let is_any_alive = snapshot.live_brokers().next().is_some();
    let is_renewed = !snapshot.refuses_writes();
    for broker in &snapshot.brokers {
        if !broker.is_alive {
            if is_renewed {
                gone(broker, is_any_alive, found);
            }
            continue;
        }
        outages(broker, rules, found);
        dispatchers(broker, found);
        losses(broker, found);
    }
    dead_letters(snapshot, rules, found);
}

fn subject(of: &BrokerPresence) -> Subject {
    Subject::Broker(shown(&of.unit), shown(&of.host))
}

fn gone(of: &BrokerPresence, is_any_alive: bool, found: &mut Found) {
    let severity = if is_any_alive { Severity::Warning } else { Severity::Critical };
    let (subject, age) = (subject(of), brief(Duration::from_secs(of.seen_ago_s)));
    let text = format!("{subject} has had no heartbeat for {age}");
    let remedy = format!(
        "see its unit there: systemctl status hero@{}; RabbitMQ keeps its messages for other brokers",
        shown(&of.unit)
    );
    found.add((ProblemKind::BrokerGone, severity), subject, text, remedy);
}

fn outages(of: &BrokerPresence, rules: &HealthRules, found: &mut Found) {
    let check = &rules.check;
    for (server, seconds) in &of.outages {
        let thresholds = (check.outage_warning.as_secs(), check.outage_critical.as_secs());
        let Some((severity, from)) = reached(*seconds, thresholds.0, thresholds.1) else {
            continue;
        };
        let name = match server.as_str() {
            "rabbitmq" => "RabbitMQ",
            "redis" => "Redis",
            "mariadb" => "MariaDB",
            _ => continue,
        };
        let (subject, from) = (subject(of), format_duration(Duration::from_secs(from)));
        let away = brief(Duration::from_secs(*seconds));
        let text = format!("{subject} has had no {name} for {away} (threshold {from})");
        let remedy =
            format!("messages wait; see why in its log: journalctl -u hero@{}", shown(&of.unit));
        found.add((ProblemKind::BrokerOutage, severity), subject, text, remedy);
    }
}

/// Dispatchers that do not consume though RabbitMQ answers.
fn dispatchers(of: &BrokerPresence, found: &mut Found) {
    if of.consuming >= of.dispatchers || of.outages.contains_key("rabbitmq") {
        return;
    }
    let subject = subject(of);
    let text = format!("{} of {} dispatchers of {subject} consume", of.consuming, of.dispatchers);
    let remedy = format!(
        "see why: hero amqp status; hero amqp check; journalctl -u hero@{}",
        shown(&of.unit)
    );
    found.add((ProblemKind::BrokerDispatchers, Severity::Warning), subject, text, remedy);
}

fn losses(of: &BrokerPresence, found: &mut Found) {
    let is_recent = of.lost_ago_s.is_some_and(|ago| ago < LOSS_TOLD.as_secs());
    if of.log_events_lost == 0 || !is_recent {
        return;
    }
    let (subject, events) = (subject(of), counted(of.log_events_lost, "log event", "log events"));
    found.add(
        (ProblemKind::LogEventsLost, Severity::Warning),
        subject.clone(),
        format!("{subject} has lost {events}"),
        "its spool is full or cannot be written: see amqp.logs.spool_dir and spool_size_max",
    );
}

fn dead_letters(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let (warning, critical) = (rules.check.amqp_dead_warning, rules.check.amqp_dead_critical);
    for (queue, number) in snapshot.amqp_dead_letters() {
        let Some((severity, from)) = reached(number, warning, critical) else { continue };
        let (queue, letters) = (shown(queue), counted(number, "dead letter", "dead letters"));
        found.add(
            (ProblemKind::AmqpDeadLetters, severity),
            Subject::AmqpQueue(queue.clone()),
            format!("RabbitMQ queue {queue} has {letters} (threshold {from})"),
            "see why: hero amqp dlq list; then: hero amqp dlq retry, or: hero amqp dlq delete",
        );
    }
}
