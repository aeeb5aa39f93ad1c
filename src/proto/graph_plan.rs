//! A graph as its submitter writes it: jobs that wait for each other by name.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::GraphCallback;
use super::job::{JobId, JobName};
use super::text::nearest;
use super::window::{GraphWindow, PauseAfter, StopAfter};

/// The jobs of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GraphToSubmit")]
pub struct GraphPlan<J> {
    /// The jobs.
    pub jobs: Vec<PlannedJob<J>>,
    /// A name for lists and searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<JobName>,
    /// The id of the graph; a random UUID without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<JobId>,
    /// The job that starts once all jobs have finished. It gets the id, name, state and counts of the graph
    /// as variables, `HERO_GRAPH_ID` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_success: Option<J>,
    /// The job that starts once all jobs have ended, and not all finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<J>,
    /// The job that starts once all jobs have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_end: Option<J>,
    /// The notifications that tell of its end, by one message with the numbers of its jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// The number of its jobs that run at once; no bound without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// The failures that stop its jobs that have not started: a number, or a share of all jobs such as `5%`; no bound
    /// without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<StopAfter>,
    /// The number of its jobs, up to 100, that start before the others, and how long these pause once the first have ended
    /// well, up to 30d, such as `1 10m`; `1 tell` pauses until `graph.tell`. No pause without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<PauseAfter>,
}

/// A job of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GraphJobToSubmit")]
pub struct PlannedJob<J> {
    /// Its name, unique in the graph.
    pub name: String,
    /// The job.
    pub job: J,
    /// The jobs that must finish first: names in the graph, or ids of other jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The jobs that must end first, finished or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_any: Vec<String>,
    /// Files for its script, in Base64, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The standard input of its script, in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

impl<J> PlannedJob<J> {
    /// A job that waits for no other and is given no files.
    pub fn new(name: String, job: J) -> Self {
        let (after, after_any, inputs) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { name, job, after, after_any, inputs, stdin: None }
    }
}

impl<J> Default for GraphPlan<J> {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            name: None,
            id: None,
            on_success: None,
            on_failure: None,
            on_end: None,
            notify: Vec::new(),
            at_a_time: None,
            stop_after: None,
            pause_after: None,
        }
    }
}

impl<J> GraphPlan<J> {
    /// A graph of one job without a name.
    pub fn of_one(job: J) -> Self {
        Self { jobs: vec![PlannedJob::new(String::new(), job)], ..Self::default() }
    }

    pub fn window(&self) -> GraphWindow {
        let Self { at_a_time, stop_after, pause_after, .. } = *self;
        GraphWindow { at_a_time, stop_after, pause_after }
    }

    pub fn set_window(&mut self, window: GraphWindow) {
        let GraphWindow { at_a_time, stop_after, pause_after } = window;
        (self.at_a_time, self.stop_after, self.pause_after) = (at_a_time, stop_after, pause_after);
    }

    pub fn callback(&mut self, of: GraphCallback) -> &mut Option<J> {
        match of {
            GraphCallback::Success => &mut self.on_success,
            GraphCallback::Failure => &mut self.on_failure,
            GraphCallback::End => &mut self.on_end,
        }
    }

    pub fn callbacks(&self) -> impl Iterator<Item = (GraphCallback, &J)> {
        let given = [&self.on_success, &self.on_failure, &self.on_end];
        let all = GraphCallback::ALL.into_iter().zip(given);
        all.filter_map(|(callback, job)| Some((callback, job.as_ref()?)))
    }

    /// The jobs with their names, then the callbacks.
    pub fn jobs_and_callbacks(&self) -> impl Iterator<Item = (&str, &J)> {
        let jobs = self.jobs.iter().map(|node| (node.name.as_str(), &node.job));
        jobs.chain(self.callbacks().map(|(callback, job)| (callback.as_str(), job)))
    }

    /// Returns it with what `change` makes of each job and callback, which it gets with its name.
    pub fn map<K, E>(
        self,
        mut change: impl FnMut(&str, J) -> Result<K, E>,
    ) -> Result<GraphPlan<K>, E> {
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for PlannedJob { name, job, after, after_any, inputs, stdin } in self.jobs {
            let job = change(&name, job)?;
            jobs.push(PlannedJob { name, job, after, after_any, inputs, stdin });
        }
        let mut callback =
            |of: GraphCallback, job: Option<J>| job.map(|job| change(of.as_str(), job)).transpose();
        Ok(GraphPlan {
            jobs,
            on_success: callback(GraphCallback::Success, self.on_success)?,
            on_failure: callback(GraphCallback::Failure, self.on_failure)?,
            on_end: callback(GraphCallback::End, self.on_end)?,
            name: self.name,
            id: self.id,
            notify: self.notify,
            at_a_time: self.at_a_time,
            stop_after: self.stop_after,
            pause_after: self.pause_after,
        })
    }

    /// Checks the graph of a periodic job: that names differ, and that its jobs have no files and wait for jobs of the graph alone, and not in a cycle.
    ///
    /// # Errors
    /// The name of a job, or nothing, and the mistake.
    pub fn check_names(&self) -> Result<(), (String, String)> {
        let mut places = HashMap::new();
        for (place, PlannedJob { name, inputs, stdin, .. }) in self.jobs.iter().enumerate() {
            if !inputs.is_empty() || stdin.is_some() {
                return Err((
                    name.clone(),
                    "has files, which a periodic job does not keep".to_owned(),
                ));
            }
            if places.insert(name.as_str(), place).is_some() {
                return Err((name.clone(), "is the name of another job of the graph".to_owned()));
            }
        }
        let mut waits_for = Vec::with_capacity(self.jobs.len());
        for PlannedJob { name, after, after_any, .. } in &self.jobs {
            let mut own = Vec::new();
            for other in after.iter().chain(after_any) {
                let Some(place) = places.get(other.as_str()) else {
                    let near = nearest(other, places.keys().copied());
                    let near = near.map(|near| format!("; did you mean `{near}`?"));
                    let why = format!("waits for `{other}`, which is no job of the graph");
                    return Err((name.clone(), why + &near.unwrap_or_default()));
                };
                own.push(*place);
            }
            waits_for.push(own);
        }
        let Some(cycle) = cycle(&waits_for) else { return Ok(()) };
        let names: Vec<&str> = cycle.iter().map(|place| self.jobs[*place].name.as_str()).collect();
        Err((names[0].to_owned(), format!("waits for itself: {}", names.join(" -> "))))
    }
}

/// Returns a cycle of jobs, each given by the places of those that it waits for: each waits for the next; the first comes
/// again at the end.
pub fn cycle(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
    // Jobs that lead to no cycle.
    let mut clear = vec![false; waits_for.len()];
    for start in 0..waits_for.len() {
        // The path from the start, each job with the index of the next link to follow.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        let mut on_path = HashMap::from([(start, 0)]);
        while let Some((job, link)) = path.last_mut() {
            match waits_for[*job].get(*link) {
                _ if clear[*job] => {
                    on_path.remove(job);
                    path.pop();
                }
                None => clear[*job] = true,
                Some(next) => {
                    *link += 1;
                    if let Some(first) = on_path.get(next) {
                        let cycle = path[*first..].iter().map(|(job, _)| *job);
                        return Some(cycle.chain([*next]).collect());
                    }
                    on_path.insert(*next, path.len());
                    path.push((*next, 0));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(waits_for: &[&[usize]]) -> Option<Vec<usize>> {
        cycle(&waits_for.iter().map(|of| of.to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn a_cycle_is_named_in_the_order_of_waiting() {
        assert_eq!(found(&[&[1], &[2], &[1]]), Some(vec![1, 2, 1]));
        assert_eq!(found(&[&[], &[1]]), Some(vec![1, 1]));
        assert_eq!(found(&[&[1, 2], &[3], &[3], &[]]), None);
        assert_eq!(found(&[&[1, 2], &[3], &[3], &[2]]), Some(vec![3, 2, 3]));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_long_chain_and_a_dense_graph_are_searched_in_linear_time() {
        let chain: Vec<Vec<usize>> =
            (0..50_000).map(|n| if n == 0 { vec![] } else { vec![n - 1] }).collect();
        assert_eq!(cycle(&chain), None);
        let dense: Vec<Vec<usize>> = (0..1000).map(|n| (0..n).collect()).collect();
        assert_eq!(cycle(&dense), None);
    }

    #[test]
    fn names_must_differ_be_known_and_wait_in_no_cycle() {
        let planned = |name: &str, after: &[&str]| PlannedJob {
            after: after.iter().map(ToString::to_string).collect(),
            ..PlannedJob::new(name.to_owned(), ())
        };
        let why = |jobs: Vec<PlannedJob<()>>| {
            let checked = GraphPlan { jobs, ..GraphPlan::default() }.check_names();
            checked.err().map(|(name, why)| format!("{name} {why}")).unwrap_or_default()
        };
        assert_eq!(why(vec![planned("b", &["a"]), planned("a", &[])]), "");
        let twice = vec![planned("a", &[]), planned("a", &[])];
        assert_eq!(why(twice), "a is the name of another job of the graph");
        assert_eq!(
            why(vec![planned("fetch", &[]), planned("count", &["fetsh"])]),
            "count waits for `fetsh`, which is no job of the graph; did you mean `fetch`?"
        );
        let cycle = vec![planned("a", &["b"]), planned("b", &["a"])];
        assert_eq!(why(cycle), "a waits for itself: a -> b -> a");
    }
}
