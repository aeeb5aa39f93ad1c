//! A private stage for `hero dev` and `hero bench`: a folder, a Redis and units of Hero. Taking it
//! down ends and removes all of them; so does dropping it. Its errors are [`Exit::Unavailable`], unless a function says
//! otherwise.

mod child;
mod folder;
mod kept_folder;
mod units;

pub(super) use child::StageChild;
pub(super) use folder::stage_of;
pub(super) use kept_folder::KeptFolder;
pub(super) use units::first_actor;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::Client;

use crate::config::{ApiConfig, Config, RedisConfig};
use crate::daemon::Interrupts;
use crate::engine::process::{ServiceSpec, find_program};
use crate::error::{Error, Exit};
use crate::proto::target::ActorId;

/// The time within which Redis and the units must be ready.
const START_MAX: Duration = Duration::from_secs(30);
/// The limit for the end of a child that has no job to wait for.
const END_MAX: Duration = Duration::from_secs(5);
/// The interval between checks of children and conditions.
const GLANCE: Duration = Duration::from_millis(2);

pub(super) enum StageFolder {
    /// Removed at the end.
    Temporary(TempDir),
    /// Kept for the next run in it; true if the caller named the configuration.
    Kept(KeptFolder, bool),
}

impl StageFolder {
    pub(super) fn temporary() -> Result<Self, Error> {
        folder::private().map(Self::Temporary)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Kept(kept, _) => &kept.path,
        }
    }

    /// Writes the configuration with `[redis]` replaced. Returns it with its file.
    fn settle(
        &self,
        config: Config,
        redis: RedisConfig,
        with_api: bool,
    ) -> Result<(Config, PathBuf), Error> {
        let folder = match self {
            Self::Kept(kept, is_named) => return kept.settle(config, redis, *is_named),
            Self::Temporary(folder) => folder.path(),
        };
        let no_api = || ApiConfig { listen: Vec::new(), ..ApiConfig::default() };
        let api = if with_api { folder::stage_api(folder, 0) } else { no_api() };
        let mut config = Config { redis, api, ..config };
        folder::own_folders(&mut config, folder);
        let file = folder::write_config(folder, &config)?;
        Ok((config, file))
    }

    pub(super) fn token(&self) -> Result<String, Error> {
        match self {
            Self::Temporary(_) => Ok(new_token()),
            Self::Kept(kept, _) => kept.token(),
        }
    }

    /// Returns the standard input of a child that is no command of the user.
    fn input_of_child(&self) -> Result<Option<File>, Error> {
        match self {
            Self::Temporary(_) => Ok(None),
            Self::Kept(kept, _) => kept.input_of_child().map(Some),
        }
    }
}

fn new_token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The children in the order of their end, with their Redis and folders.
pub(super) struct Stage {
    command: Option<StageChild>,
    units: Vec<StageChild>,
    redis: StageChild,
    pub(super) client: Client,
    pub(super) config: Config,
    pub(super) config_file: PathBuf,
    verbose: bool,
    /// Set to let the units reload the configuration.
    pub(super) reload: Arc<AtomicBool>,
    pub(super) place: StageFolder,
    /// The parent of the folders of jobs.
    of_jobs: TempDir,
}

impl Stage {
    /// Writes the configuration with only `[redis]` replaced, starts Redis.
    /// With `verbose`, children write to standard error, else to files in the folder. With `with_api`,
    /// the supervisor serves the API on a free port of this machine.
    pub(super) async fn open(
        place: StageFolder,
        config: Config,
        verbose: bool,
        with_api: bool,
    ) -> Result<Self, Error> {
        let Some(server) = find_program("redis-server") else {
            let message = "cannot find redis-server; install it: apt-get install redis-server";
            return Err(unavailable(message));
        };
        let folder = place.path().to_owned();
        let socket = folder.join(folder::SOCKET);
        let url = format!("redis+unix://{}", socket.display());
        // One server holds all shards.
        let shards = config.redis.shards;
        let redis = RedisConfig { url: url.into(), shards, ..RedisConfig::default() };
        let (config, config_file) = place.settle(config, redis, with_api)?;
        let of_jobs = folder::of_jobs(&folder)?;
        let spec = ServiceSpec {
            program: server.into(),
            args: redis_args(&socket, &folder),
            cwd: Some(folder.clone()),
            input: place.input_of_child()?,
            own_group: true,
            ..ServiceSpec::default()
        };
        let redis = StageChild::start("redis-server", spec, &folder, verbose)?;
        let client = crate::cli::author::open_client(&config)?;
        let mut stage = Self {
            command: None,
            units: Vec::new(),
            redis,
            client,
            config,
            config_file,
            verbose,
            reload: Arc::default(),
            place,
            of_jobs,
        };
        stage
            .until(async |client| Ok(client.ping().await.is_ok()), "answer of redis-server")
            .await?;
        Ok(stage)
    }

    /// Waits until the API is served, as [`Self::until`] does. Returns its address.
    pub(super) async fn until_api(&mut self) -> Result<String, Error> {
        let file = self.config.api.address_file.clone().unwrap_or_default();
        let read = || std::fs::read_to_string(&file);
        self.until(async |_| Ok(read().is_ok()), "address of the API").await?;
        let text =
            read().map_err(|error| unavailable(format!("no address of the API: {error}")))?;
        if let StageFolder::Kept(kept, _) = &self.place {
            kept.note_address(&text)?;
        }
        Ok(text.trim_end().to_owned())
    }

    /// Starts a unit of this program, with further environment variables.
    pub(super) fn start_unit(&mut self, unit: &str, env: &[(&str, &str)]) -> Result<i32, Error> {
        let mut env: Vec<(OsString, OsString)> =
            env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        env.push(("HERO_CONFIG".into(), self.config_file.clone().into()));
        env.push(("RUNTIME_DIRECTORY".into(), self.of_jobs.path().into()));
        let spec = ServiceSpec {
            program: this_program()?.into(),
            args: vec!["run".into(), unit.into()],
            env,
            input: self.place.input_of_child()?,
            own_group: true,
            ..ServiceSpec::default()
        };
        let child = StageChild::start(unit, spec, self.place.path(), self.verbose)?;
        let pid = child.pid();
        self.units.push(child);
        Ok(pid)
    }

    /// Starts the user's command at the terminal, with the configuration of this stage and this program first in its
    /// `PATH`. Fails with [`Exit::NotFound`] if the program does not exist.
    pub(super) fn start_command(
        &mut self,
        command: &[OsString],
        access: &[(&str, String)],
    ) -> Result<(), Error> {
        let Some((program, args)) = command.split_first() else { return Ok(()) };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let here = this_program()?.parent().map(PathBuf::from).into_iter();
        let path =
            std::env::join_paths(here.chain(std::env::split_paths(&path))).map_err(|error| {
                unavailable(format!("cannot make the PATH of the command: {error}"))
            })?;
        let mut env =
            vec![("HERO_CONFIG".into(), self.config_file.clone().into()), ("PATH".into(), path)];
        env.extend(access.iter().map(|(name, value)| (name.into(), value.into())));
        let spec = ServiceSpec {
            program: program.clone(),
            args: args.to_vec(),
            env,
            inherit_stdin: true,
            ..ServiceSpec::default()
        };
        self.command = Some(StageChild::with_terminal(&program.to_string_lossy(), spec)?);
        Ok(())
    }

    /// Waits until all of these actors are present, as [`Self::until`] does.
    pub(super) async fn until_present(&mut self, actors: &[ActorId]) -> Result<(), Error> {
        let all_present = async |client: &Client| {
            let live = client.actors().list(None).await?;
            Ok(actors.iter().all(|actor| live.iter().any(|one| one.actor == *actor)))
        };
        self.until(all_present, "presence of all actors").await
    }

    /// Waits until a condition holds; fails if a child ends before, with the end of its log, or it takes too long.
    pub(super) async fn until(
        &mut self,
        holds: impl AsyncFn(&Client) -> Result<bool, Error>,
        what: &str,
    ) -> Result<(), Error> {
        let began = Instant::now();
        while !holds(&self.client).await? {
            self.check()?;
            if began.elapsed() > START_MAX {
                return Err(unavailable(format!("no {what} within {START_MAX:.0?}")));
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Waits until the command has ended and returns its exit code; without a command, for ever. Fails if Redis ends
    /// meanwhile, or the supervisor ends with an error.
    pub(super) async fn until_command_ends(&mut self) -> Result<u8, Error> {
        // The user waits for the end of a command, but not for the end of a unit.
        let glance = if self.command.is_some() { 5 * GLANCE } else { 50 * GLANCE };
        loop {
            if let Some(command) = &mut self.command
                && let Some(code) = command.ended()?
            {
                self.command = None;
                return Ok(code);
            }
            self.tend()?;
            self.reload_if_asked()?;
            tokio::time::sleep(glance).await;
        }
    }

    /// Returns the time within which units end that are asked to.
    pub(super) fn end_max(config: &Config) -> Duration {
        config.actor.drain_timeout + config.job.kill_grace + END_MAX
    }

    /// Ends the units and waits for that; every interrupt asks them again.
    pub(super) async fn end_units(
        &mut self,
        interrupts: Option<&mut Interrupts>,
    ) -> Result<(), Error> {
        let grace = Self::end_max(&self.config);
        end_all(&mut self.units, grace, interrupts).await?;
        self.units.clear();
        Ok(())
    }

    /// Ends the command, then the units, which drain, then Redis, and removes a temporary folder. A further
    /// interrupt cuts the waits short, in the same order. After a failure, which is returned, the rest is taken down.
    pub(super) async fn take_down(mut self, interrupts: &mut Interrupts) -> Result<(), Error> {
        let command = end_all(self.command.as_mut_slice(), END_MAX, Some(interrupts)).await;
        let told = child::tell_of_drain(self.config.actor.drain_timeout);
        let units = tokio::select! {
            units = self.end_units(Some(interrupts)) => units,
            never = told => match never {},
        };
        let redis = end_all(std::slice::from_mut(&mut self.redis), END_MAX, Some(interrupts)).await;
        let removed = match self.place {
            StageFolder::Temporary(folder) => {
                let path = folder.path().display().to_string();
                let failed = |error| unavailable(format!("cannot remove {path}: {error}"));
                folder.close().map_err(failed)
            }
            StageFolder::Kept(..) => Ok(()),
        };
        command.and(units).and(redis).and(removed)
    }
}

/// Asks children to end and waits for that; every interrupt asks again; kills the rest after `grace`.
async fn end_all(
    children: &mut [StageChild],
    grace: Duration,
    mut interrupts: Option<&mut Interrupts>,
) -> Result<(), Error> {
    children.iter_mut().for_each(StageChild::ask_to_end);
    let deadline = tokio::time::Instant::now() + grace;
    loop {
        let mut left = false;
        for child in children.iter_mut() {
            left |= child.ended()?.is_none();
        }
        if !left {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(GLANCE) => {}
            () = again(interrupts.as_deref_mut()) => {
                children.iter_mut().for_each(StageChild::ask_to_end);
            }
        }
        if tokio::time::Instant::now() > deadline {
            return children.iter_mut().try_for_each(StageChild::kill);
        }
    }
}

async fn again(interrupts: Option<&mut Interrupts>) {
    match interrupts {
        Some(interrupts) => drop(interrupts.next().await),
        None => std::future::pending().await,
    }
}

fn redis_args(socket: &Path, folder: &Path) -> Vec<OsString> {
    let fixed = "--port 0 --unixsocketperm 700 --appendonly yes --appendfsync everysec --save";
    let mut args: Vec<OsString> = fixed.split(' ').map(OsString::from).collect();
    // No snapshots: the value of --save is empty.
    args.push(OsString::new());
    for (name, value) in [("--unixsocket", socket), ("--dir", folder)] {
        args.extend([name.into(), value.into()]);
    }
    args
}

fn this_program() -> Result<PathBuf, Error> {
    std::env::current_exe()
        .map_err(|error| unavailable(format!("cannot find the file of this program: {error}")))
}

pub(super) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(Exit::Unavailable, message)
}
