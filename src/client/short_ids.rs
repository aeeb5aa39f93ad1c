//! Short ids: the beginning of an id of a job, graph or batch stands for it while it is unique.

use super::{Client, ClientError};
use crate::proto::graph::GraphInfo;
use crate::proto::job::JobId;
use crate::proto::shard::Shard;
use crate::store::{IdsFound, JobSummary, Store};

/// The least characters of a short id.
const CHARS_MIN: usize = 4;
/// With so many characters, one match is enough, even if not every job was looked at.
const CHARS_SURE: usize = 8;
/// The maximum number of graphs that are looked at.
const GRAPHS_LOOKED_MAX: usize = 10_000;
/// The length of the ids that Hero makes.
const UUID_CHARS: usize = 36;

impl Client {
    /// Returns the job that a text names: its id, or the unique beginning of its id, of 4 characters or
    /// more. A text that may be a whole id costs no look at others, and stays as it is if no job matches.
    ///
    /// # Errors
    /// [`ClientError::Name`] if it is not legal; [`ClientError::AmbiguousId`] if several jobs match;
    /// [`ClientError::ShortIdNotFound`] if none does and not all were looked at; [`ClientError::Store`].
    pub async fn job_id(&self, text: &str) -> Result<JobId, ClientError> {
        self.job_id_among(text.parse()?, |_| true).await
    }

    /// The same, for a caller that `sees` only some jobs.
    ///
    /// # Errors
    /// As [`Client::job_id`].
    pub async fn job_id_among(
        &self,
        id: JobId,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<JobId, ClientError> {
        let (store, length) = self.looked_for(&id)?;
        if !(CHARS_MIN..UUID_CHARS).contains(&length) || store.exists(&id).await? {
            return Ok(id);
        }
        let found = store.ids_beginning(id.as_str()).await?;
        let jobs = store.summaries(found.ids.iter().cloned().collect()).await?;
        let ids: Vec<JobId> = jobs.into_iter().flatten().filter(sees).map(|job| job.id).collect();
        let is_sure = !found.more || length >= CHARS_SURE;
        match ids.as_slice() {
            [one] if is_sure => Ok(one.clone()),
            [] if !found.more => Ok(id),
            [_] | [] => Err(ClientError::ShortIdNotFound { part: id, looked: found.looked }),
            _ => {
                let more = found.ids.len() >= IdsFound::MOST;
                Err(ClientError::AmbiguousId { part: id, first: ids, more })
            }
        }
    }

    /// Returns the graph or batch that a text names: by its id as [`Client::job_id`] does for a job, or by its name,
    /// if one of the latest 10 000 alone has it.
    ///
    /// # Errors
    /// [`ClientError::Name`] if it is not legal; [`ClientError::AmbiguousGraph`] if several ids match,
    /// [`ClientError::AmbiguousGraphName`] if several names do; [`ClientError::ShortGraphNotFound`] if none does and not
    /// all were looked at; [`ClientError::Store`].
    pub async fn graph_id(&self, text: &str) -> Result<JobId, ClientError> {
        let by_id = match text.parse::<JobId>() {
            Ok(id) => self.graph_id_among(id, |_| true).await,
            Err(illegal) => Err(illegal.into()),
        };
        match &by_id {
            Ok(id) if self.of(id)?.graph(id).await?.is_some() => return by_id,
            Ok(_) | Err(ClientError::Name(_) | ClientError::ShortGraphNotFound { .. }) => {}
            Err(_) => return by_id,
        }
        let mut named = self.graphs_named(text).await?;
        match named.len() {
            0 => by_id,
            1 => Ok(named.remove(0)),
            _ => Err(ClientError::AmbiguousGraphName { name: text.to_owned(), first: named }),
        }
    }

    /// Looks for the graphs with a name, at most [`IdsFound::MOST`].
    async fn graphs_named(&self, name: &str) -> Result<Vec<JobId>, ClientError> {
        let mut named = Vec::new();
        for store in self.shards.all() {
            let (mut looked, mut next) = (0, None);
            loop {
                let page = store.graphs(Store::GRAPHS_PER_PAGE_MAX, next).await?;
                looked += page.items.len();
                let is_named =
                    |graph: &GraphInfo| graph.name.as_ref().is_some_and(|own| own.as_str() == name);
                named.extend(page.items.into_iter().filter(is_named).map(|graph| graph.id));
                next = page.next;
                if next.is_none() || looked >= GRAPHS_LOOKED_MAX || named.len() >= IdsFound::MOST {
                    break;
                }
            }
        }
        named.truncate(IdsFound::MOST);
        Ok(named)
    }

    /// The same, for a caller that `sees` only some graphs.
    ///
    /// # Errors
    /// As [`Client::graph_id`].
    pub async fn graph_id_among(
        &self,
        id: JobId,
        sees: impl Fn(&GraphInfo) -> bool,
    ) -> Result<JobId, ClientError> {
        let (store, length) = self.looked_for(&id)?;
        if !(CHARS_MIN..UUID_CHARS).contains(&length) || store.graph(&id).await?.is_some() {
            return Ok(id);
        }
        let (mut found, mut looked, mut next) = (Vec::new(), 0, None);
        loop {
            let page = store.graphs(Store::GRAPHS_PER_PAGE_MAX, next).await?;
            looked += page.items.len();
            let graphs = page.items.into_iter().filter(&sees).map(|graph| graph.id);
            found.extend(graphs.filter(|other| other.as_str().starts_with(id.as_str())));
            next = page.next;
            if next.is_none() || looked >= GRAPHS_LOOKED_MAX || found.len() >= IdsFound::MOST {
                break;
            }
        }
        let is_sure = next.is_none() || length >= CHARS_SURE;
        match found.as_slice() {
            [one] if is_sure => Ok(one.clone()),
            [] if next.is_none() => Ok(id),
            [_] | [] => Err(ClientError::ShortGraphNotFound { part: id, looked }),
            _ => {
                let more = found.len() > IdsFound::MOST || next.is_some();
                found.truncate(IdsFound::MOST);
                Err(ClientError::AmbiguousGraph { part: id, first: found, more })
            }
        }
    }

    /// Returns the shard that the beginning of an id tells, and the length of the rest.
    fn looked_for(&self, id: &JobId) -> Result<(&Store, usize), ClientError> {
        let (store, text) = (self.of(id)?, id.as_str());
        let told = if store.shard() == Shard::HOME { None } else { text.find('-') };
        Ok((store, text.len() - told.map_or(0, |at| at + 1)))
    }
}
