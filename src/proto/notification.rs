//! Notifications: what has happened, which message tells it, and when the message is sent. Pure.

mod event;
mod message;
mod plan;

pub use event::{NotifyEvent, NotifyKind};
pub use message::{DeliveryRecord, NotifyMessage};
pub use plan::{MessagePlan, NotifyState, PlannedMessage};

pub use super::job::NotifyName;
