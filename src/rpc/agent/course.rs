//! The course of a call of a tool: its progress, if the agent asks for that, and its cancel, which stops the job of
//! `run_script`, or the batch of `run_on_machines`.

use std::pin::pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::fleet::ON_MACHINES;
use super::tools::RUN;
use super::{AgentServer, published};
use crate::proto::job::JobId;

/// The time between two looks at the progress of a job.
const LOOK: Duration = Duration::from_millis(500);

/// A transport's means to follow a call.
pub struct CallCourse {
    /// Takes notifications of the call, before its answer.
    pub notices: mpsc::Sender<Value>,
    /// True once the agent cancels the call.
    pub cancelled: watch::Receiver<bool>,
}

/// Waits until a flag is set; false if nobody can set it any more.
async fn is_set(flag: &mut watch::Receiver<bool>) -> bool {
    flag.wait_for(|set| *set).await.is_ok()
}

impl CallCourse {
    /// Waits for the end of a call; `None` if it is cancelled.
    pub(super) async fn follow<T>(
        mut self,
        server: &AgentServer,
        params: &Value,
        mut begun: watch::Receiver<Option<JobId>>,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let token = Some(&params["_meta"]["progressToken"]).filter(|token| !token.is_null());
        let named = params["arguments"]["id"].as_str().and_then(|id| id.parse().ok());
        let name = params["name"].as_str().unwrap_or_default();
        let stop = match name {
            ON_MACHINES => Some("graph.stop"),
            _ if name == RUN || published::script_of(name).is_some() => Some("job.stop"),
            _ => None,
        };
        let (mut call, mut told) = (pin!(call), None);
        let (mut is_cancelled, mut may_cancel, mut may_begin) = (false, true, true);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut call => return (!is_cancelled).then_some(done),
                asked = is_set(&mut self.cancelled), if may_cancel => {
                    (is_cancelled, may_cancel) = (asked, false);
                }
                changed = begun.changed(), if may_begin => may_begin = changed.is_ok(),
                _ = looks.tick(), if token.is_some() => {}
            }
            if is_cancelled && stop.is_none() {
                return None;
            }
            let job = begun.borrow().clone();
            match job {
                Some(id) if is_cancelled => {
                    // A job that has ended meanwhile cannot be stopped.
                    drop(server.call(stop.unwrap_or_default(), json!({ "id": id })).await);
                    return None;
                }
                // Its job is being stored.
                None if is_cancelled => {}
                job => {
                    if let (Some(token), Some(id)) = (token, job.or_else(|| named.clone())) {
                        self.tell(server, id, token, &mut told).await;
                    }
                }
            }
        }
    }

    /// Reports the progress of a job, if it has grown since the last report.
    async fn tell(&self, server: &AgentServer, id: JobId, token: &Value, told: &mut Option<f64>) {
        let found = server.context.client.jobs().summaries(vec![id]).await.unwrap_or_default();
        let Some(job) = found.first().filter(|job| server.context.finds(job)) else { return };
        let share = job.fields.get("progress").and_then(|text| text.parse::<f64>().ok());
        let progress = share.unwrap_or_default();
        if told.is_some_and(|before| progress <= before) {
            return;
        }
        *told = Some(progress);
        let step = job.fields.get("progress_text").cloned();
        let notice = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token,
                "progress": progress,
                "total": 1,
                "message": step.unwrap_or_else(|| format!("job {} is {}", job.id, job.status)),
            },
        });
        // Without a reader it is not told.
        drop(self.notices.send(notice).await);
    }
}
