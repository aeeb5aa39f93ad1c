//! A job: its ids, its states, its settings, and its hash in Redis.

mod arguments;
mod asked_bounds;
mod asked_output;
mod attempts;
mod bounds;
mod checkpoint;
mod child;
mod content_key;
mod corrections;
mod fields;
mod files;
mod foreign_spelling;
mod hash;
mod id;
mod json;
mod notify_names;
mod output;
mod output_overflow;
mod record;
mod retry_delays;
mod secret_use;
mod session;
mod settings;
mod signature;
mod signed_job;
mod signing_key;
mod spec;
mod state_filter;
mod status;
mod tags;
mod time_value;
mod traceparent;
mod uniqueness;
mod value;
mod wait;

pub use arguments::Params;
pub use asked_bounds::{AskedBounds, MemorySize, NetworkAccess};
pub use asked_output::{ASKED_OUTPUT_BYTES_MAX, AskedOutput, FoundOutput};
pub use attempts::{AttemptOutcome, JobAttempt};
pub use bounds::{InvalidJob, JobBounds, Retention};
pub use checkpoint::{Checkpoint, STATE_BYTES_MAX};
pub use child::{
    CHILDREN_BYTES_MAX, CHILDREN_PER_REQUEST_MAX, ChildName, GENERATIONS_MAX, NewChildren,
    SubmitRule, child_id, graph_of_children, in_order, is_id_of_callback, is_id_of_child,
    resolve_names, shown_place,
};
pub use corrections::Corrections;
pub use fields::{
    AddedField, FieldGroup, FieldUnit, JOB_FIELDS, JobField, QUEUE_PLACE, TREES, WAITS_FOR,
};
pub use files::{
    Artifact, FILES_NOT_KEPT, FileBody, FileName, INPUT_FILES, JobFiles, NamedFiles, OUTPUT_FILES,
    STDIN, file_names,
};
pub use id::{BootId, ContentHash, JobId, JobName, JobReference, LimitKey, ShardKey, UniqueKey};
pub use json::json_of_field;
pub use notify_names::{NotifyName, notify_names};
pub use output::{JobOutput, ReplyFormat};
pub use output_overflow::OutputOverflow;
pub use record::Job;
pub use retry_delays::{ExitCodes, RetryDelays};
pub use secret_use::{SecretName, SecretUse};
pub use session::{
    AskedCall, CALL_BYTES_MAX, CALL_OUTPUT_BYTES_MAX, CallKind, SessionAnswer, SessionCall,
    end_for_script,
};
pub use settings::job_settings;
pub use signature::{FileDigests, JobSignature, KeyName, PublicKey};
pub use signed_job::{RequiredKeys, file_digests, signed_text};
pub use signing_key::SigningKey;
pub use spec::{Entrance, JobSpec, SETTINGS, Setting};
pub use state_filter::StateFilter;
pub use status::{JobEnd, JobStatus};
pub use tags::Tags;
pub use time_value::{TypeTimes, parse_timestamp};
pub use traceparent::TraceParent;
pub use uniqueness::{OnDuplicate, UniqueBy, holder_of_key, unique_scope};
pub use value::FieldKind;
pub use value::Give;
pub(crate) use value::is_variable_name;
pub use wait::{AskedWait, EVENT_BYTES_MAX, check_event, event_data};
