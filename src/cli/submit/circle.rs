//! `hero submit --circle`: a task for the workers of rhailib, and its output.

use serde_json::json;

use super::super::{Global, output};
use super::Submit;
use crate::error::{Error, Exit};
use crate::proto::job::JobOutput;
use crate::proto::legacy::Circle;

impl Submit {
    pub(super) async fn run_in_circle(
        &self,
        circle: &Circle,
        global: &Global,
    ) -> Result<(), Error> {
        if circle.is_pattern() {
            let message = format!("--circle {circle}: it is a pattern; name one circle");
            return Err(Error::new(Exit::Usage, message));
        }
        let (script, timeout) = self.options.text_and_timeout(global.config()?)?;
        let ran = global.client()?.run_in_circle(circle, &script, Some(timeout)).await;
        let text = ran.map_err(|error| {
            let error = Error::from(error);
            Error::new(
                error.exit,
                format!("running a task in the circle {circle}: {}", error.message),
            )
        })?;
        if global.json {
            return output::json(&json!({ "output": text }));
        }
        output::result(&JobOutput::from(text), false)
    }
}
