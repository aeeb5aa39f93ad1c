//! Short ids: the beginning of an id of a job, graph or batch stands for it while it is unique.

use std::collections::BTreeSet;

use super::{Client, ClientError, GraphClient, JobClient, Result};
use crate::proto::graph::GraphInfo;
use crate::proto::job::{JobId, JobReference};
use crate::proto::shard::Shard;
use crate::store::{IdsFound, JobSummary, Store};

const CHARS_MIN: usize = 4;
const GRAPHS_LOOKED_MAX: usize = 10_000;

impl JobClient<'_> {
    /// Returns the job that a text names: its id, or the unique beginning of its id, of 4 characters or
    /// more. A text that may be a whole id costs no look at others, and stays as it is if no job matches. An id that may be the
    /// beginning of one that Hero makes, such as `beef`, names no job if it is: `id:beef` is the job that has it.
    ///
    /// # Errors
    /// [`ClientError::Name`] if it is not legal; [`ClientError::AmbiguousId`] if several jobs match;
    /// [`ClientError::ShortIdNotFound`] if none does and not all were looked at; [`ClientError::Store`].
    pub async fn id(self, text: &str) -> Result<JobId> {
        self.id_among(&text.parse()?, None, |_| true).await
    }

    /// The same, for a caller that `sees` only some jobs. An id of a job with its name is this job.
    pub async fn id_among(
        self,
        JobReference { id, is_whole }: &JobReference,
        caller: Option<&str>,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<JobId> {
        let may_be_short = if *is_whole { |_: &JobId| false } else { JobId::may_begin_uuid };
        self.job_that(id, may_be_short, caller, sees).await
    }

    /// The same for a prerequisite, which programs name by whole ids: one that is shorter than lists show ids is the job that
    /// has it.
    pub async fn prerequisite_among(
        self,
        id: &JobId,
        caller: Option<&str>,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<JobId> {
        self.job_that(id, JobId::is_like_short_uuid, caller, sees).await
    }

    /// Returns the job that an id names; an id that `may_be_short` is looked for as the beginning of others, too.
    async fn job_that(
        self,
        id: &JobId,
        may_be_short: fn(&JobId) -> bool,
        caller: Option<&str>,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<JobId> {
        let (store, length) = self.client.searched_store(id)?;
        if !(CHARS_MIN..JobId::UUID_CHARS).contains(&length) {
            return Ok(id.clone());
        }
        // One that the caller does not see is as none: it must not hide the jobs whose ids it begins.
        let whole = store.jobs().summaries(vec![id.clone()]).await?;
        let whole = whole.into_iter().flatten().find(&sees);
        let is_own = |job: &JobSummary| job.fields.get("caller_id").map(String::as_str) == caller;
        if whole.as_ref().is_some_and(|job| !may_be_short(id) || is_own(job)) {
            return Ok(id.clone());
        }
        let mut found = store.jobs().ids_beginning(id.as_str()).await?;
        found.ids.extend(whole.map(|job| job.id));
        let jobs = store.jobs().summaries(found.ids.iter().cloned().collect()).await?;
        let ids = jobs.into_iter().flatten().filter(&sees).map(|job| job.id).collect();
        let (is_all, has_more) = (!found.more, found.ids.len() >= IdsFound::MOST);
        let found = FoundIds { ids, looked: found.looked, is_all, has_more };
        found.one("job", id.clone(), length)
    }
}

impl GraphClient<'_> {
    /// Returns the graph or batch that a text names: by its id as [`JobClient::id`] does for a job, or by its name,
    /// if one of the latest 10 000 alone has it. `id:` before it takes it as an id alone. A text that is the id of one graph
    /// and the name of another names none of them.
    ///
    /// # Errors
    /// [`ClientError::Name`] if it is not legal; [`ClientError::AmbiguousId`] if several ids match,
    /// [`ClientError::AmbiguousGraphName`] if several names do; [`ClientError::ShortIdNotFound`] if none does and not
    /// all were looked at; [`ClientError::Store`].
    pub async fn id(self, text: &str) -> Result<JobId> {
        self.id_among(text, None, |_| true).await
    }

    /// The same, for a caller that `sees` only some graphs. An id of a graph with its name is this graph.
    pub async fn id_among(
        self,
        text: &str,
        caller: Option<&str>,
        sees: impl Fn(&GraphInfo) -> bool,
    ) -> Result<JobId> {
        if let Some(id) = text.strip_prefix(JobReference::ID_MARK) {
            return self.of_id(id.parse()?, |_| false, caller, &sees).await;
        }
        let by_id = match text.parse::<JobId>() {
            Ok(id) => self.of_id(id, JobId::may_begin_uuid, caller, &sees).await,
            Err(illegal) => Err(illegal.into()),
        };
        let known = match &by_id {
            Ok(id) => self.client.of(id)?.graphs().get(id).await?.filter(&sees),
            Err(ClientError::Name(_) | ClientError::ShortIdNotFound { .. }) => None,
            Err(_) => return by_id,
        };
        let is_sure = |of: &GraphInfo| {
            Some(of.caller.as_str()) == caller || of.id.as_str() == text && of.id.is_of_hero()
        };
        if known.as_ref().is_some_and(is_sure) {
            return by_id;
        }
        let is_named = |graph: &GraphInfo| sees(graph) && graph.name.as_deref() == Some(text);
        let mut named: Vec<JobId> = known.into_iter().map(|graph| graph.id).collect();
        for store in self.client.shards.all() {
            named.extend(graphs_that(store, is_named).await?.ids);
        }
        let first: BTreeSet<JobId> = named.into_iter().take(IdsFound::MOST).collect();
        let mut first: Vec<JobId> = first.into_iter().collect();
        match first.len() {
            0 => by_id,
            1 => Ok(first.remove(0)),
            _ => Err(ClientError::AmbiguousGraphName { name: text.to_owned(), first }),
        }
    }

    /// Returns the graph that an id or its beginning names.
    async fn of_id(
        self,
        id: JobId,
        may_be_short: fn(&JobId) -> bool,
        caller: Option<&str>,
        sees: impl Fn(&GraphInfo) -> bool,
    ) -> Result<JobId> {
        let (store, length) = self.client.searched_store(&id)?;
        if !(CHARS_MIN..JobId::UUID_CHARS).contains(&length) {
            return Ok(id);
        }
        let is_own = |graph: &GraphInfo| Some(graph.caller.as_str()) == caller;
        let whole = store.graphs().get(&id).await?.filter(&sees);
        if whole.as_ref().is_some_and(|graph| !may_be_short(&id) || is_own(graph)) {
            return Ok(id);
        }
        let is_meant =
            |graph: &GraphInfo| sees(graph) && graph.id.as_str().starts_with(id.as_str());
        let mut found = graphs_that(store, is_meant).await?;
        found.ids.extend(whole.map(|graph| graph.id).filter(|id| !found.ids.contains(id)));
        found.one("graph", id.clone(), length)
    }
}

impl Client {
    /// Returns the shard that the beginning of an id names, and the length of the rest.
    fn searched_store(&self, id: &JobId) -> Result<(&Store, usize)> {
        let (store, text) = (self.of(id)?, id.as_str());
        let told = if store.shard() == Shard::HOME { None } else { text.find('-') };
        Ok((store, text.len() - told.map_or(0, |at| at + 1)))
    }
}

/// The ids that begin with a text, or that have a name.
struct FoundIds {
    ids: Vec<JobId>,
    looked: usize,
    /// True if all were looked at.
    is_all: bool,
    /// True if there may be more than the first.
    has_more: bool,
}

impl FoundIds {
    /// Returns the only one, or the text that may be a whole id; `of` is `job` or `graph`.
    fn one(self, of: &'static str, part: JobId, length: usize) -> Result<JobId> {
        let Self { ids, looked, is_all, has_more: more } = self;
        match ids.as_slice() {
            // With so many characters, or as a whole id, one match is enough, even if not every job was looked at.
            [one] if is_all || length >= JobId::SHORT_CHARS || *one == part => Ok(one.clone()),
            [] if is_all => Ok(part),
            [_] | [] => Err(ClientError::ShortIdNotFound { of, part, looked }),
            _ => Err(ClientError::AmbiguousId { of, part, first: ids, more }),
        }
    }
}

/// Looks for graphs among the latest of a shard.
async fn graphs_that(store: &Store, is_meant: impl Fn(&GraphInfo) -> bool) -> Result<FoundIds> {
    let (mut ids, mut looked, mut next) = (Vec::new(), 0, None);
    loop {
        let page = store.graphs().list(Store::GRAPHS_PER_PAGE_MAX, next).await?;
        looked += page.items.len();
        ids.extend(page.items.into_iter().filter(&is_meant).map(|graph| graph.id));
        next = page.next;
        if next.is_none() || looked >= GRAPHS_LOOKED_MAX || ids.len() >= IdsFound::MOST {
            break;
        }
    }
    let (is_all, has_more) = (next.is_none(), ids.len() > IdsFound::MOST || next.is_some());
    ids.truncate(IdsFound::MOST);
    Ok(FoundIds { ids, looked, is_all, has_more })
}
