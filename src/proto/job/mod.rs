//! A job: its ids, its states, its settings, and its hash in Redis.

mod attempts;
mod bounds;
mod copy;
mod foreign_spelling;
mod hash;
mod id;
mod json;
mod last_attempt;
mod output;
mod record;
mod reply_format;
mod settings;
mod spec;
mod status;
mod value;

pub use attempts::{AttemptOutcome, JobAttempt};
pub use bounds::{InvalidJob, JobBounds, Retention};
pub use id::{BootId, JobId, JobName, LimitKey, UniqueKey};
pub use output::JobOutput;
pub use record::Job;
pub use reply_format::ReplyFormat;
pub(crate) use settings::job_settings;
pub use spec::{Entrance, JobSpec, SETTINGS, Setting};
pub use status::JobStatus;
pub use value::FieldKind;
pub(crate) use value::Give;
