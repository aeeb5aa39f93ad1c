//! Periodic jobs in Redis: adds, changes and deletes them.

use super::{ClientError, CronClient};
use crate::config::Crontab;
use crate::error::{Error, Exit};
use crate::proto::cron::{ADDED_BYTES_MAX, ADDED_MAX, AddedCron, CronChange, CronName};
use crate::proto::job::Job;
use crate::proto::text::shown;
use crate::store::{CronEdit, CronEdited};

impl CronClient<'_> {
    /// Adds a periodic job to those in Redis; `by` is who asks. `may_submit` gets each job as its firings submit it.
    ///
    /// # Errors
    /// [`Exit::Data`] if it is not legal, a file or Redis has its name, or there are too many; the code of
    /// [`ClientError::Store`].
    pub async fn add<E: From<Error>>(
        self,
        files: &Crontab,
        name: &str,
        new: CronChange,
        by: &str,
        may_submit: impl Fn(&Job) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = free_name(files, name)?;
        let in_utc = AddedCron { time_zone: "UTC".to_owned(), ..AddedCron::default() };
        let added = self.signed(in_utc.with(new), by).await?;
        let text = checked(files, &name, &added)?;
        self.jobs_of(files, &name, &added).await?.iter().try_for_each(may_submit)?;
        self.change(&name, CronEdit::Add(&text)).await?;
        self.client.audit().note("cron.add", &name).await;
        Ok(())
    }

    /// Changes a periodic job in Redis: given settings replace its own; `by` is who asks. `may_submit` gets the
    /// jobs as its firings submit them, before and after the change.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if Redis has none of this name; as [`Self::add`].
    pub async fn edit<E: From<Error>>(
        self,
        files: &Crontab,
        name: &str,
        change: CronChange,
        by: &str,
        may_submit: impl Fn(&Job) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = free_name(files, name)?;
        let before = self.added(&name).await?.ok_or_else(|| missing(&name))?;
        let old: AddedCron = serde_json::from_str(&before).unwrap_or_default();
        self.may_change(files, (&name, &old), &may_submit).await?;
        let changed = self.signed(old.with(change), by).await?;
        let after = checked(files, &name, &changed)?;
        self.jobs_of(files, &name, &changed).await?.iter().try_for_each(may_submit)?;
        self.change(&name, CronEdit::Edit { before: &before, after: &after }).await?;
        self.client.audit().note("cron.edit", &name).await;
        Ok(())
    }

    /// Deletes a periodic job in Redis, with its history. Its jobs stay. `may_submit` gets the job as its firings submit it.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if Redis has none of this name; [`Exit::Data`] if it is in a file.
    pub async fn delete<E: From<Error>>(
        self,
        files: &Crontab,
        name: &str,
        may_submit: impl Fn(&Job) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = free_name(files, name)?;
        if let Some(text) = self.added(&name).await? {
            let old = serde_json::from_str(&text).unwrap_or_default();
            self.may_change(files, (&name, &old), &may_submit).await?;
        }
        self.change(&name, CronEdit::Delete).await?;
        self.client.audit().note("cron.delete", &name).await;
        Ok(())
    }

    /// Returns the definition of a periodic job in Redis.
    async fn added(self, name: &CronName) -> Result<Option<String>, Error> {
        let added = self.client.store.cron().added().await.map_err(ClientError::from)?;
        Ok(added.into_iter().find(|(other, _)| other == name).map(|(_, text)| text))
    }

    /// Refuses a change of a periodic job by `may_submit`. One that cannot fire, as its published script is gone, may be changed.
    async fn may_change<E>(
        self,
        files: &Crontab,
        (name, added): (&CronName, &AddedCron),
        may_submit: impl Fn(&Job) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.jobs_of(files, name, added).await {
            Ok(jobs) => jobs.iter().try_for_each(may_submit),
            Err(_) => Ok(()),
        }
    }

    /// Returns the jobs of a firing now, with the published scripts that they name.
    async fn jobs_of(
        self,
        files: &Crontab,
        name: &CronName,
        added: &AddedCron,
    ) -> Result<Vec<Job>, Error> {
        let bad = |why: String| Error::new(Exit::Data, format!("cron {name}: {why}"));
        let entry = files.rules.entry(name, added).map_err(bad)?;
        let mut jobs = entry.jobs(self.client.system().now().await?);
        for job in &mut jobs {
            self.client.scripts().resolve(job).await?;
        }
        Ok(jobs)
    }

    async fn signed(self, added: AddedCron, by: &str) -> Result<AddedCron, Error> {
        let (by, at) = self.client.by_now(by).await?;
        Ok(AddedCron { by, at, ..added })
    }

    async fn change(self, name: &CronName, edit: CronEdit<'_>) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(Exit::Data, message));
        match self.client.store.cron().edit(name, edit).await.map_err(ClientError::from)? {
            CronEdited::Done => Ok(()),
            CronEdited::Missing => Err(missing(name)),
            CronEdited::Exists => {
                refused(format!("cron {name} exists already; hero cron edit {name} changes it"))
            }
            CronEdited::Changed => {
                refused(format!("cron {name} was changed by another caller meanwhile; try again"))
            }
            CronEdited::Full => refused(format!(
                "cannot add cron {name}: redis has {ADDED_MAX} periodic jobs, which is the limit; delete one, or \
                 declare it in a file"
            )),
        }
    }
}

/// Parses a name that no file has: files win.
fn free_name(files: &Crontab, name: &str) -> Result<CronName, Error> {
    let bad = |message: String| Error::new(Exit::Data, message);
    let name: CronName = name.parse().map_err(|error| bad(format!("{error}")))?;
    match files.entries.iter().find(|entry| entry.name == name) {
        None => Ok(name),
        Some(entry) => {
            Err(bad(format!("cron {name} is in {}: change that file, and reload", entry.place)))
        }
    }
}

fn checked(files: &Crontab, name: &CronName, added: &AddedCron) -> Result<String, Error> {
    let bad = |why: String| Error::new(Exit::Data, format!("cron {name}: {why}"));
    files.rules.entry(name, added).map_err(bad)?;
    let text = serde_json::to_string(added).map_err(|error| bad(error.to_string()))?;
    if text.len() > ADDED_BYTES_MAX {
        return Err(bad(format!(
            "larger than the limit of {ADDED_BYTES_MAX} bytes in redis; declare it in a file"
        )));
    }
    Ok(text)
}

fn missing(name: &CronName) -> Error {
    let name = shown(name.as_str());
    Error::new(
        Exit::NotFound,
        format!("no such periodic job in redis: `{name}`; hero cron list shows all"),
    )
}
