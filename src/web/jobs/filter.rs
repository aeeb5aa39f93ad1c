//! The filters of the list of jobs, as the address has them.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::ShownState;

/// The sizes of a page that a visitor may choose; the first is the default.
const SIZES: [usize; 3] = [25, 50, 100];

/// The ages that the form offers.
pub(super) const AGES: [(&str, &str); 5] = [
    ("", "any time"),
    ("15m", "last 15 min"),
    ("1h", "last hour"),
    ("24h", "last 24 h"),
    ("7d", "last 7 days"),
];

/// The filters. An empty one filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::web) struct JobFilter {
    /// The state, by its class.
    pub(super) state: String,
    /// The start of an id, or a part of the name or of the error.
    pub(super) q: String,
    /// The script type.
    #[serde(rename = "type")]
    pub(super) script_type: String,
    pub(super) queue: String,
    pub(super) caller: String,
    /// Created since: an age such as `1h`, or a time.
    pub(super) since: String,
    /// Created until: the same.
    pub(super) until: String,
    /// `error` groups failures by their errors.
    pub(super) by: String,
    pub(super) limit: String,
    pub(super) cursor: String,
}

impl JobFilter {
    /// Returns the state; `None` for all.
    pub(super) fn state(&self) -> Option<ShownState> {
        ShownState::parse(&self.state)
    }

    /// Returns the number of rows of a page.
    pub(super) fn size(&self) -> usize {
        let asked = self.limit.parse().unwrap_or(SIZES[0]);
        if SIZES.contains(&asked) { asked } else { SIZES[0] }
    }

    /// Returns true if an index answers it: each row that is read is shown.
    pub(super) fn is_indexed(&self) -> bool {
        let others = [&self.q, &self.queue, &self.caller, &self.since, &self.until];
        let is_derived = matches!(
            self.state(),
            Some(ShownState::Held | ShownState::Queued | ShownState::Cancelled | ShownState::Error)
        );
        others.iter().all(|text| text.trim().is_empty()) && !is_derived
    }

    /// Returns true if it shows all jobs.
    pub(super) fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// Returns its filters, without the place in the list.
    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("state", &self.state),
            ("q", &self.q),
            ("type", &self.script_type),
            ("queue", &self.queue),
            ("caller", &self.caller),
            ("since", &self.since),
            ("until", &self.until),
        ];
        all.into_iter()
            .map(|(name, value)| (name, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    /// Returns the address of a page with these filters and more.
    pub(super) fn address(&self, links: &SiteLinks, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = self.fields();
        query.push(("limit", &self.limit));
        query.extend(more);
        links.with(path, &query)
    }

    /// Returns the test of a job for all of the filters.
    pub(super) fn test(&self, now: Timestamp) -> JobTest<'_> {
        JobTest {
            filter: self,
            state: self.state(),
            text: self.q.trim().to_lowercase(),
            since: moment(&self.since, now),
            until: moment(&self.until, now),
        }
    }
}

/// The filters, ready to test jobs.
pub(super) struct JobTest<'a> {
    filter: &'a JobFilter,
    state: Option<ShownState>,
    text: String,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl JobTest<'_> {
    /// Returns true if a job passes.
    pub(super) fn passes(&self, job: &JobDoc) -> bool {
        let Self { filter, state, text, since, until } = self;
        let created = job.time("created_at");
        let is_of = |asked: &str, own: &str| asked.trim().is_empty() || asked.trim() == own;
        let has_text = || {
            let holds = |field: &str| job.text(field).to_lowercase().contains(text.as_str());
            job.id().to_lowercase().starts_with(text.as_str()) || holds("error") || holds("name")
        };
        state.is_none_or(|state| job.state() == state)
            && is_of(&filter.script_type, job.text("script_type"))
            && is_of(&filter.caller, job.text("caller_id"))
            && (filter.queue.trim().is_empty()
                || job.queue().is_some_and(|queue| queue == filter.queue.trim()))
            && since.is_none_or(|since| created.is_some_and(|created| created >= since))
            && until.is_none_or(|until| created.is_some_and(|created| created <= until))
            && (text.is_empty() || has_text())
    }
}

/// Returns the time of a text: an age such as `15m`, `24h` or `7d`, or a time with its zone.
fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let unit = text.chars().last()?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    now.checked_sub(Duration::from_secs(number.checked_mul(seconds)?)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T13:00:00Z".parse().expect("a time")
    }

    fn passes(filter: &JobFilter) -> bool {
        let job = JobDoc::from(json!({
            "id": "invoice-7", "status": "error", "error": "HTTP Error 503", "script_type": "python",
            "group": "io", "caller_id": "billing", "created_at": "2026-01-31T12:30:00Z",
        }));
        filter.test(now()).passes(&job)
    }

    #[test]
    fn job_passes_each_filter_or_not() {
        let of = |name: &str, value: &str| {
            let filter: JobFilter =
                serde_json::from_value(json!({ name: value })).expect("a filter");
            passes(&filter)
        };
        for (name, value) in [
            ("q", "invoice"),
            ("q", "error 50"),
            ("state", "error"),
            ("type", "python"),
            ("queue", "type:python:group:io"),
            ("caller", "billing"),
            ("since", "1h"),
            ("until", "2026-01-31T12:45:00Z"),
            ("since", "nonsense"),
        ] {
            assert!(of(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("q", "7"),
            ("state", "cancelled"),
            ("type", "osis"),
            ("queue", "type:python"),
            ("caller", "bill"),
            ("since", "15m"),
            ("until", "1h"),
        ] {
            assert!(!of(name, value), "{name}={value}");
        }
    }

    #[test]
    fn address_keeps_filters_and_drops_the_place() {
        let filter = JobFilter {
            state: "error".into(),
            q: " a&b ".into(),
            cursor: "x".into(),
            ..JobFilter::default()
        };
        let address = filter.address(&SiteLinks::new("/"), "/jobs", &[("cursor", "y")]);
        assert_eq!(address, "/jobs?state=error&q=a%26b&cursor=y");
        assert!(!filter.is_indexed() && JobFilter::default().is_indexed());
    }

    #[test]
    fn hostile_texts_are_no_moments() {
        for text in ["", "é", "99999999999999999999d", "-1h", "18446744073709551615d"] {
            assert_eq!(moment(text, now()), None, "{text}");
        }
    }
}
