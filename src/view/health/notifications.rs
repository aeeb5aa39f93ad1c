//! Notifications that are not delivered.

use super::{Found, ProblemKind, Severity, Subject};
use crate::proto::text::shown;
use crate::view::Snapshot;

/// Each notification whose latest attempt failed.
pub(super) fn all(snapshot: &Snapshot, found: &mut Found) {
    for record in &snapshot.failing_notifications {
        let subject = Subject::Notification(shown(&record.notification));
        let then = match record.state.as_str() {
            "failed" => "was given up",
            _ => "is tried again",
        };
        let text = format!("{subject} cannot be delivered and {then}: {}", shown(&record.error));
        let remedy = format!(
            "see all: hero notify list; once it is mended: hero notify test {}",
            shown(&record.notification)
        );
        found.add((ProblemKind::NotificationFails, Severity::Warning), subject, text, remedy);
    }
}
