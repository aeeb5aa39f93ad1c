//! Events that are told to jobs.

use serde_json::json;

use super::{Client, ClientError, Result};
use crate::proto::audit::bounded;
use crate::proto::job::{InvalidJob, JobId, check_event, event_data};
use crate::store::TellOutcome;

impl Client {
    /// Tells a job an event with a value of JSON, or none. Returns whether the job waited for it; if not, it is kept
    /// for the next wait of the job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] for a name or a value that is not legal;
    /// [`ClientError::WrongState`] if the job has ended, has had this event, no longer waits for it, keeps too many, or
    /// waits for it from others.
    pub async fn tell_job(&self, id: &JobId, event: &str, data: Option<&str>) -> Result<bool> {
        let status = match self.try_tell_job(id, event, data).await? {
            TellOutcome::Told => return Ok(true),
            TellOutcome::Kept => return Ok(false),
            TellOutcome::Missing => return Err(ClientError::NoSuchJob(id.clone())),
            TellOutcome::Twice => {
                format!(
                    "told {event} already; it can be told that again once it waits for it again"
                )
            }
            TellOutcome::Missed => format!(
                "past its wait for {event}, which ended by its time; it can be told that once it waits for it again"
            ),
            TellOutcome::Forbidden => format!(
                "waiting for {event} from others than {}: hero job show {id} names them",
                self.author.who
            ),
            TellOutcome::Full => "full of events that it has not waited for".to_owned(),
            TellOutcome::Refused(status) => status.to_string(),
            TellOutcome::Illegal => "without a legal target".to_owned(),
        };
        Err(ClientError::wrong_state("tell", id, status))
    }

    /// Tells a job an event as [`Client::tell_job`] does, and returns what the job makes of it.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] for a name or a value that is not legal; [`ClientError::Store`].
    pub async fn try_tell_job(
        &self,
        id: &JobId,
        event: &str,
        data: Option<&str>,
    ) -> Result<TellOutcome> {
        check_event(event).map_err(|why| InvalidJob::new("event", why))?;
        let data = data.map(event_data).transpose();
        let data = data.map_err(|why| InvalidJob::new("data", why))?;
        let told = self.event_json(event, data);
        let outcome = self.of(id)?.tell(id, (event, &told), &self.author.names).await?;
        if matches!(outcome, TellOutcome::Told | TellOutcome::Kept) {
            self.note("job.tell", format!("{id} ({event})")).await;
        }
        Ok(outcome)
    }

    /// Returns the event as JSON, with who tells it and from where. The value is as it was written, with all digits of
    /// its numbers.
    fn event_json(&self, event: &str, data: Option<String>) -> String {
        let by = &self.author;
        let (who, from, through) = (bounded(&by.who), bounded(&by.from), by.through);
        let data = data.unwrap_or_else(|| "null".to_owned());
        let rest = json!({ "event": event, "who": who, "from": from, "through": through });
        format!("{{\"data\":{data},{}", &rest.to_string()[1..])
    }
}
