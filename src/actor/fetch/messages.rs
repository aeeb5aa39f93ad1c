//! Control messages: what each makes the fetch loop do.

use tracing::{info, warn};

use super::Fetch;
use super::errand::Errand;
use crate::engine::StopReason;
use crate::proto::job::JobId;
use crate::proto::message::Control;

/// Most stops remembered for jobs whose hash is still on its way.
const EARLY_STOPS_MAX: usize = 1000;

impl Fetch {
    pub(super) fn on_message(&mut self, actor: usize, message: &[u8]) {
        let id = &self.slots[actor].id;
        let message = match Control::parse(message) {
            Ok(message) => message,
            Err(error) => {
                warn!(actor = %id, "dropped a message: {error}");
                return;
            }
        };
        match message {
            Control::Stop(job) => self.stop(job),
            Control::Drain => {
                info!(actor = %id, "drains: takes no more jobs until it is told to resume");
                self.drain_slots(actor, true);
            }
            Control::Resume if self.drain.has_begun() => {
                warn!(actor = %id, "does not resume: it shuts down");
            }
            Control::Resume => {
                info!(actor = %id, "resumes");
                self.drain_slots(actor, false);
            }
            Control::Shutdown => {
                info!(actor = %id, "was told to shut down");
                self.drain.requested();
            }
            Control::Wake => self.slots[actor].look_again(),
            Control::Ping { reply_to } => self.errands.push_back(Errand::Pong(reply_to)),
        }
    }

    /// Starts or ends the draining of one actor, and lets its presence say so at once.
    fn drain_slots(&mut self, actor: usize, draining: bool) {
        self.slots[actor].drain(draining);
        self.tell_vitals();
        self.life.vitals.news.notify_one();
    }

    /// Stops a job that runs here; hands the stop on if it runs elsewhere or not at all.
    fn stop(&mut self, id: JobId) {
        match self.running.get(&id) {
            Some(running) => {
                info!(job_id = %id, "stops on request");
                running.cancel.request(StopReason::Requested);
            }
            None => self.errands.push_back(Errand::PassOnStop(id)),
        }
    }

    /// A stop for a job that Redis says is ours: it runs here by now, it has just ended, or the
    /// answer to its claim is still on its way.
    pub(super) fn stop_own(&mut self, id: JobId) {
        if let Some(running) = self.running.get(&id) {
            running.cancel.request(StopReason::Requested);
        } else if !self.endings.holds(&id) && self.early_stops.len() < EARLY_STOPS_MAX {
            self.early_stops.push(id);
        }
    }
}
