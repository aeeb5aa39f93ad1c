//! A submission that is repeated with the id and the content of the one before, as after a lost answer: its job is the one
//! that is there.

use crate::proto::job::Job;

/// Returns true if a job is the one that another submission of the same id made.
pub fn is_repeated(known: &Job, given: Job) -> bool {
    let mut spec = given.spec;
    let of_content = spec.key_of_content();
    spec.unique_key = of_content.or(spec.unique_key.take());
    spec.id.clone_from(&known.spec.id);
    // A repeated request is in another span.
    spec.traceparent = known.spec.traceparent;
    // It tells only whether a program waits for the end.
    spec.reply = known.spec.reply;
    // It is of the same content, until another time.
    if spec.signature.is_none() {
        spec.signature.clone_from(&known.spec.signature);
    }
    spec == known.spec
}
