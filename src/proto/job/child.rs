//! The jobs that a running script submits: its children. Their ids follow from the job of the script and the name
//! that the script gives, so that a further attempt finds the same jobs.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::id::JobId;
use super::record::Job;
use super::spec::{JobSpec, Setting};
use crate::proto::json_text::refuse_wide_integers;
use crate::proto::target::{Group, IllegalName, ScriptType};
use crate::proto::text::sha256;
use crate::proto::units::parse_duration;

pub const CHILDREN_BYTES_MAX: usize = 256 * 1024;
pub const CHILDREN_PER_REQUEST_MAX: usize = 50;
/// The most generations of children below a job that no script submitted.
pub const GENERATIONS_MAX: u32 = 8;
/// The start of the id of a child, after the name of its shard.
const PREFIX: &str = "child-";
/// The start of the id of a callback of a graph, as `settle.lua` makes it.
const CALLBACK_PREFIX: &str = "callback-";
/// The digits behind them.
const DIGITS: usize = 32;
/// The settings that a child has from its parent, or from nobody.
const NOT_OF_A_CHILD: [(&str, &str); 4] = [
    ("id", "follows from the name: give a `name`"),
    ("caller_id", "is the one of the job that submits it"),
    ("context_id", "is the one of the job that submits it"),
    ("debounce", "is for submitters outside of jobs"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChildren {
    /// The children. Their ids are not theirs yet.
    pub jobs: Vec<Job>,
    /// True if the script sent a list.
    pub is_list: bool,
    /// The children that did not name their priority: they have the one of the parent.
    pub without_priority: Vec<usize>,
}

impl NewChildren {
    /// Reads a request: an object with the settings of a job as a line of a batch has them, or a list of objects.
    pub fn of_json(json: &str) -> Result<Self, String> {
        if json.len() > CHILDREN_BYTES_MAX {
            return Err(Self::too_large());
        }
        refuse_wide_integers(json.as_bytes())
            .map_err(|why| format!("the request cannot be read: {why}"))?;
        let given: Value = serde_json::from_str(json)
            .map_err(|error| format!("the request is not JSON: {error}"))?;
        let (given, is_list) = match given {
            Value::Array(list) => (list, true),
            one => (vec![one], false),
        };
        if given.is_empty() || given.len() > CHILDREN_PER_REQUEST_MAX {
            return Err(format!(
                "a request has from 1 to {CHILDREN_PER_REQUEST_MAX} children, not {}",
                given.len()
            ));
        }
        let (mut jobs, mut without_priority) = (Vec::new(), Vec::new());
        for (place, child) in given.iter().enumerate() {
            let Value::Object(child) = child else {
                return Err(format!("{}is not a JSON object", shown_place(place, is_list)));
            };
            let job =
                job_of(child).map_err(|why| format!("{}{why}", shown_place(place, is_list)))?;
            if !child.contains_key("priority") {
                without_priority.push(place);
            }
            jobs.push(job);
        }
        Ok(Self { jobs, is_list, without_priority })
    }

    pub fn too_large() -> String {
        format!(
            "the request has more than {CHILDREN_BYTES_MAX} bytes: submit fewer jobs at once, or smaller ones"
        )
    }
}

/// Returns the words before a reason that name the child of a list.
pub fn shown_place(place: usize, is_list: bool) -> String {
    if is_list { format!("child {}: ", place + 1) } else { String::new() }
}

fn job_of(child: &Map<String, Value>) -> Result<Job, String> {
    for name in child.keys() {
        let field = Setting::named(name).map_or(name.as_str(), |setting| setting.field);
        if let Some((_, why)) = NOT_OF_A_CHILD.iter().find(|(of, _)| *of == field) {
            return Err(format!("invalid job: {name} {why}"));
        }
    }
    let mut child = child.clone();
    let delay = child.remove("delay");
    let mut job = Job::from_json(&child).map_err(|error| error.to_string())?;
    if let Some(delay) = delay {
        if job.spec.run_at.is_some() {
            return Err("invalid job: delay cannot be set beside `at`".to_owned());
        }
        let delay = parse_duration(delay.as_str().unwrap_or_default());
        job.delay = Some(delay.map_err(|error| format!("invalid job: delay {error}"))?);
    }
    // A published script has its type.
    if job.spec.script_type.is_none() && job.spec.uses.is_none() {
        return Err("invalid job: script_type is missing".to_owned());
    }
    // Nobody waits for a child by its reply list.
    job.spec.reply &= job.spec.reply_format.is_some();
    Ok(job)
}

/// Returns the id of the child of a job: by its name, or by its place among those without one. A later job with
/// the same id as the parent has other children.
pub fn child_id(parent: &Job, name: &ChildName<'_>) -> JobId {
    let created = parent.created_at.map(|at| at.to_string()).unwrap_or_default();
    let text = match name {
        ChildName::Named(name) => format!("{}\n{created}\nname {name}", parent.id),
        ChildName::Place(place) => format!("{}\n{created}\nplace {place}", parent.id),
    };
    derived(PREFIX, &text)
}

/// Returns the id that follows from a text.
fn derived(prefix: &str, text: &str) -> JobId {
    let id = format!("{prefix}{}", &sha256(text)[..DIGITS]);
    id.parse().unwrap_or_else(|_| JobId::random())
}

/// Lets a child wait for other children of its parent by their names: `id_of` returns the id of a name.
pub fn resolve_names(child: &mut JobSpec, id_of: impl Fn(&str) -> JobId) {
    let ids = child.prerequisites.iter_mut().chain(&mut child.after_any);
    for other in ids.filter(|id| !is_id_of_child(id)) {
        let id = id_of(other.as_str());
        let name = std::mem::replace(other, id.clone());
        child.prerequisite_names.insert(name.to_string(), id);
    }
}

/// Moves each child of a list behind those that it waits for. Returns whether one of them waits for another.
///
/// # Errors
/// The child that waits for itself, over others.
pub fn in_order(jobs: &mut Vec<Job>) -> Result<bool, String> {
    let ids = |jobs: &[Job]| jobs.iter().map(|job| job.id.clone()).collect::<BTreeSet<_>>();
    let waits = |job: &Job, for_one_of: &BTreeSet<JobId>| {
        job.spec.waits_for().any(|id| for_one_of.contains(id))
    };
    let mut left = std::mem::take(jobs);
    let all = ids(&left);
    let is_graph = left.iter().any(|job| waits(job, &all));
    while !left.is_empty() {
        let open = ids(&left);
        let (later, ready): (Vec<Job>, Vec<Job>) =
            left.into_iter().partition(|job| waits(job, &open));
        if ready.is_empty() {
            let name = later[0].spec.name.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(format!(
                "invalid job: `{name}` waits for itself, over other jobs of the list"
            ));
        }
        jobs.extend(ready);
        left = later;
    }
    Ok(is_graph)
}

/// Returns the id of the graph of some children, which follows from theirs.
pub fn graph_of_children(jobs: &[Job]) -> JobId {
    let text: String = jobs.iter().flat_map(|job| [job.id.as_str(), "\n"]).collect();
    derived("graph-", &text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildName<'a> {
    Named(&'a str),
    /// Its place among the children without a name, from 0.
    Place(u64),
}

/// Returns true for the id of a child, which only an actor gives.
pub fn is_id_of_child(id: &JobId) -> bool {
    is_derived(id, PREFIX)
}

/// Returns true for the id of a callback, which only the end of its graph gives.
pub fn is_id_of_callback(id: &JobId) -> bool {
    is_derived(id, CALLBACK_PREFIX)
}

fn is_derived(id: &JobId, prefix: &str) -> bool {
    id.behind_shard().strip_prefix(prefix).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// An entry of `may_submit`: a script type, or one of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitRule {
    script_type: ScriptType,
    group: Option<Group>,
}

impl SubmitRule {
    pub fn script_type(&self) -> &ScriptType {
        &self.script_type
    }

    /// Returns whether it allows a job. A type without a group allows every group.
    pub fn allows(&self, job: &Job) -> bool {
        job.spec.script_type.as_ref() == Some(&self.script_type)
            && (self.group.is_none() || job.spec.group == self.group)
    }
}

impl FromStr for SubmitRule {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        let (script_type, group) = match text.split_once(':') {
            Some((script_type, group)) => (script_type, Some(group.parse()?)),
            None => (text, None),
        };
        Ok(Self { script_type: script_type.parse()?, group })
    }
}

impl fmt::Display for SubmitRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{}:{group}", self.script_type),
            None => self.script_type.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<NewChildren, String> {
        NewChildren::of_json(json)
    }

    #[test]
    fn id_follows_from_the_parent_and_the_name_and_belongs_to_children_alone() {
        let mut parent = Job::new("p".parse().expect("legal"), "1");
        parent.created_at = "2026-01-31T12:00:00.000Z".parse().ok();
        let of = |parent: &Job, name: &str| child_id(parent, &ChildName::Named(name));
        let id = of(&parent, "page-1");
        assert_eq!(id, of(&parent, "page-1"));
        assert_ne!(id, of(&parent, "page-2"));
        assert_ne!(of(&parent, "0"), child_id(&parent, &ChildName::Place(0)));
        let later = Job { created_at: None, ..parent.clone() };
        assert_ne!(id, of(&later, "page-1"), "another job with the same id");
        let is = |text: &str| is_id_of_child(&text.parse().expect("legal"));
        assert!(is(id.as_str()) && is(&format!("s3-{id}")));
        for other in
            ["child-1", "child-", "s3-child-7", "cron-a", &format!("{id}0"), &format!("x{id}")]
        {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn request_is_an_object_or_a_bounded_list_and_names_what_is_wrong() {
        let one =
            read(r#"{"type": "python", "script": "1", "name": "a", "priority": 0}"#).expect("one");
        assert_eq!((one.jobs.len(), one.is_list, one.without_priority.len()), (1, false, 0));
        let list = read(r#"[{"type": "python", "script": "1"}, {"type": "bash", "script": "2"}]"#)
            .expect("two");
        assert_eq!((list.jobs.len(), list.is_list, list.without_priority), (2, true, vec![0, 1]));
        let many = format!("[{}]", vec!["{}"; 51].join(","));
        let large =
            format!(r#"{{"type": "bash", "script": "{}"}}"#, "x".repeat(CHILDREN_BYTES_MAX));
        for (json, why) in [
            ("7", "is not a JSON object"),
            ("[]", "from 1 to 50 children, not 0"),
            (many.as_str(), "from 1 to 50 children, not 51"),
            (large.as_str(), "more than 262144 bytes"),
            (r#"{"script": "1"}"#, "script_type is missing"),
            (r#"{"uses": "Deploy"}"#, "NAME@VERSION"),
            (r#"{"type": "bash", "script": "1", "id": "x"}"#, "id follows from the name"),
            (r#"{"type": "bash", "script": "1", "caller": "x"}"#, "caller is the one of the job"),
            (
                r#"{"type": "bash", "script": "1", "context_id": "x"}"#,
                "context_id is the one of the job",
            ),
            (
                r#"[{"type": "bash", "script": "1"}, {"type": "bash", "parent": "x", "script": "1"}]"#,
                "child 2: invalid job: parent is written by hero alone",
            ),
        ] {
            let error = read(json).expect_err(json);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn children_of_a_list_wait_for_each_other_by_name_and_stand_behind_those_that_they_wait_for() {
        let digits = "0123456789abcdef0123456789abcde";
        let id_of = |name: &str| format!("child-{digits}{name}").parse().expect("legal");
        let list = |json: &str| {
            let mut jobs = read(json).expect("legal").jobs;
            for job in &mut jobs {
                job.id = id_of(job.spec.name.as_ref().expect("a name").as_str());
                resolve_names(&mut job.spec, id_of);
            }
            in_order(&mut jobs).map(|is_graph| (is_graph, jobs))
        };
        let (is_graph, jobs) = list(
            r#"[{"type": "osis", "script": "1", "name": "c", "after": ["b"], "after_any": ["a"]},
                {"type": "osis", "script": "1", "name": "b", "after": ["a", "d"]},
                {"type": "osis", "script": "1", "name": "a"}]"#,
        )
        .expect("it has an order");
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        assert_eq!((is_graph, ids), (true, ["a", "b", "c"].map(id_of).to_vec()));
        let waits: Vec<JobId> = jobs[1].spec.waits_for().cloned().collect();
        assert_eq!(waits, ["a", "d"].map(id_of), "also for one of an earlier request");
        assert_eq!(jobs[2].spec.prerequisite_names["b"], id_of("b"));
        let plain = list(r#"[{"type": "osis", "script": "1", "name": "a"}]"#).expect("no order");
        assert!(!plain.0);
        let error = list(
            r#"[{"type": "osis", "script": "1", "name": "a", "after": ["b"]},
                {"type": "osis", "script": "1", "name": "b", "after": ["a"]}]"#,
        );
        assert!(error.expect_err("a circle").contains("`a` waits for itself"));
    }

    #[test]
    fn rule_allows_a_type_or_one_group_of_it() {
        let job = |target: &str| {
            let json = format!(r#"{{"type": "bash", "script": "1"{target}}}"#);
            read(&json).expect("a child").jobs.remove(0)
        };
        let rule = |text: &str| text.parse::<SubmitRule>().expect("legal");
        let (plain, web) = (job(""), job(r#", "group": "web""#));
        assert!(rule("bash").allows(&plain) && rule("bash").allows(&web));
        assert!(rule("bash:web").allows(&web) && !rule("bash:web").allows(&plain));
        assert!(!rule("python").allows(&plain));
        assert_eq!(rule("bash:web").to_string(), "bash:web");
        assert!("bash:".parse::<SubmitRule>().is_err() && "*".parse::<SubmitRule>().is_err());
    }
}
