//! Notifications: what has happened, which message tells it, and when the message is sent. Pure.

mod event;
mod message;
mod plan;
mod problems;

pub use event::{NotifyEvent, NotifyKind};
pub use message::{DeliveryRecord, NotifyMessage};
pub use plan::{MessagePlan, NotifyState, PlannedMessage};
pub use problems::{ProblemMark, ProblemSteps};

pub use super::job::NotifyName;
