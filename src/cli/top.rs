//! `hero top`: queues, actors, running jobs and the latest failures, live in the terminal.
//!
//! ```text
//! keyboard ──┐
//! snapshots ─┼─ Notice ─→ Screen ─→ draw
//! the log ───┘              └─ Act ─→ client
//! ```
//!
//! [`Screen`] is pure: it takes keys and snapshots, and says what is to be done.

mod draw;
mod job_view;
mod jobs_view;
mod panes;
mod screen;
mod screen_data;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event};
use ratatui::{Terminal, backend::TestBackend};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::job::show::without_secrets;
use super::{Global, output};
use crate::client::{Client, UnreachedShard};
use crate::config::parse_duration;
use crate::daemon::Interrupts;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{Job, JobId};
use crate::proto::message::Control;
use crate::store::{FoundJobs, LogLine};
use draw::{TerminalFeatures, draw};
use jobs_view::JobsWanted;
use screen::{Act, Screen};
use screen_data::{ScreenData, SnapshotSource};

/// Watch queues, actors, running jobs and failures in the terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero top\n  hero top --once\n\n\
                  Keys: tab and the arrows move, Enter shows a job and its log, or the jobs of a queue, \
                  s stops and r retries a job, l lists all jobs by state, p pauses or resumes a queue, o sorts the \
                  queues by name, queued, held or wait, d drains or resumes an actor, / filters, \
                  ? lists all keys, q quits. The screen works from 80 columns and 24 lines on; below, \
                  it shows one list at a time.")]
pub(super) struct Top {
    /// Print one frame and end: of the terminal's size, or of 80 columns and 24 lines
    #[arg(long)]
    once: bool,
    /// The time between two readings
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
}

enum Notice {
    Terminal(Event),
    Snapshot(Result<Box<ScreenData>, String>),
    Done(Result<String, String>),
    Job(Result<Box<Job>, String>),
    Log(JobId, Vec<LogLine>, String),
    Jobs(JobsWanted, Result<FoundJobs, String>),
}

/// Notices that wait; who has more waits too, so that a long log takes no memory.
const NOTICES_MAX: usize = 64;
/// A list of jobs is read again at the earliest after so many times the time that its last reading took.
const LIST_PAUSE: u32 = 10;
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The interval between checks of the keyboard reader for a listener.
const KEYBOARD_WAIT: Duration = Duration::from_millis(200);

impl Top {
    pub(super) async fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        if global.json {
            let message = "hero top draws a screen, which is no JSON document; \
                           hero status --json has the same numbers";
            return Err(Error::new(Exit::Usage, message));
        }
        let source = SnapshotSource::of(global)?;
        if self.once {
            self.print_once(&source, global).await?;
            return Ok(ExitCode::SUCCESS);
        }
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            let message = "hero top needs a terminal for its keys and its screen; \
                           hero top --once prints one frame without one";
            return Err(Error::new(Exit::Usage, message.to_owned()));
        }
        let mut interrupts = Interrupts::listen()?;
        let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
        let (sender, mut notices) = mpsc::channel(NOTICES_MAX);
        let keyboard = sender.clone();
        std::thread::spawn(move || read_keyboard(&keyboard));
        let mut session =
            TopSession { source, sender, screen: Screen::default(), follower: None, lister: None };
        session.read_each(self.interval.max(INTERVAL_MIN));
        let look = TerminalFeatures::of_terminal(global.color);
        let end = loop {
            if let Err(error) = terminal.draw(|frame| draw(frame, &mut session.screen, look)) {
                break Err(failed(&error));
            }
            tokio::select! {
                notice = notices.recv() => match notice {
                    Some(notice) => if session.take(notice) { break Ok(ExitCode::SUCCESS) },
                    None => break Ok(ExitCode::SUCCESS),
                },
                signal = interrupts.next() => break Ok(ExitCode::from(128 + signal)),
            }
        };
        ratatui::restore();
        end
    }

    /// Prints one frame. The rates need two readings.
    async fn print_once(&self, source: &SnapshotSource, global: &Global) -> Result<(), Error> {
        let first = ScreenData::read(source, None).await?;
        tokio::time::sleep(self.interval).await;
        let snapshot = ScreenData::read(source, Some(&first)).await?;
        let mut screen = Screen::default();
        screen.show(snapshot);
        let (width, height) = match ratatui::crossterm::terminal::size() {
            Ok((width, height)) if io::stdout().is_terminal() && width > 0 => (width, height - 1),
            _ => (80, 24),
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height))
            .map_err(|error: core::convert::Infallible| failed(&io::Error::other(error)))?;
        let look =
            TerminalFeatures { colour: false, ..TerminalFeatures::of_terminal(global.color) };
        let _ = terminal.draw(|frame| draw(frame, &mut screen, look));
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for line in buffer.content().chunks(width.into()) {
            let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        output::text(&text)
    }
}

fn failed(error: &io::Error) -> Error {
    Error::new(Exit::Output, format!("cannot use the terminal: {}", reason(error)))
}

/// Sends what the terminal tells until nobody listens.
fn read_keyboard(notices: &mpsc::Sender<Notice>) {
    while !notices.is_closed() {
        let event = match event::poll(KEYBOARD_WAIT) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let Ok(event) = event else { return };
        if notices.blocking_send(Notice::Terminal(event)).is_err() {
            return;
        }
    }
}

/// The screen with all that runs beside it.
struct TopSession {
    source: SnapshotSource,
    sender: mpsc::Sender<Notice>,
    screen: Screen,
    /// Follows the log of the job that is shown.
    follower: Option<JoinHandle<()>>,
    /// Reads the list of jobs that is shown.
    lister: Option<JoinHandle<()>>,
}

impl TopSession {
    fn read_each(&self, interval: Duration) {
        let (source, sender) = (self.source.clone(), self.sender.clone());
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut before: Option<ScreenData> = None;
            loop {
                ticks.tick().await;
                let notice = match ScreenData::read(&source, before.as_ref()).await {
                    Ok(snapshot) => {
                        before = Some(snapshot.clone());
                        Ok(Box::new(snapshot))
                    }
                    Err(error) => Err(error.message),
                };
                if sender.send(Notice::Snapshot(notice)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Takes a notice. Returns true if the screen is to be left.
    fn take(&mut self, notice: Notice) -> bool {
        match notice {
            Notice::Snapshot(Ok(snapshot)) => {
                self.screen.show(*snapshot);
                if let Some(id) = self.screen.job.as_ref().map(|job| job.id.clone()) {
                    self.read_job(id);
                }
                let is_read = self.lister.as_ref().is_none_or(JoinHandle::is_finished);
                if let Some(wanted) = self.screen.jobs_wanted().filter(|_| is_read).cloned() {
                    self.read_jobs(wanted);
                }
            }
            Notice::Snapshot(Err(trouble)) => self.screen.trouble = Some(trouble),
            Notice::Done(result) => self.screen.told = Some(result),
            Notice::Job(Ok(job)) => self.screen.show_job(&job),
            Notice::Job(Err(trouble)) => self.screen.told = Some(Err(trouble)),
            Notice::Log(id, lines, unfinished) => self.screen.show_log(&id, lines, &unfinished),
            Notice::Jobs(wanted, found) => self.screen.show_jobs(&wanted, found),
            Notice::Terminal(Event::Key(key)) if key.is_press() => {
                return match self.screen.press(key) {
                    Some(Act::Quit) => true,
                    Some(act) => {
                        self.start(act);
                        false
                    }
                    None => false,
                };
            }
            Notice::Terminal(_) => {}
        }
        false
    }

    fn start(&mut self, act: Act) {
        match act {
            Act::Quit => {}
            Act::Close => self.follow(None),
            Act::Open(id) => {
                self.follow(Some(id.clone()));
                self.read_job(id);
            }
            Act::List(wanted) => self.read_jobs(wanted),
            act => {
                let (client, sender) = (self.source.client.clone(), self.sender.clone());
                tokio::spawn(async move {
                    let done = perform(&client, act).await.map_err(|error| error.message);
                    let _ = sender.send(Notice::Done(done)).await;
                });
            }
        }
    }

    fn read_job(&self, id: JobId) {
        let (client, sender) = (self.source.client.clone(), self.sender.clone());
        let redact = self.source.redact.clone();
        tokio::spawn(async move {
            let job = client.get_job(&id).await.map(|job| Box::new(without_secrets(job, &redact)));
            let job = job.map_err(|error| error.to_string());
            let _ = sender.send(Notice::Job(job)).await;
        });
    }

    /// Reads a list of jobs instead of the one before. A search may look at many jobs, so a pause comes after it.
    fn read_jobs(&mut self, wanted: JobsWanted) {
        if let Some(before) = self.lister.take() {
            before.abort();
        }
        let (client, sender) = (self.source.client.clone(), self.sender.clone());
        self.lister = Some(tokio::spawn(async move {
            let began = Instant::now();
            let found = wanted.read(&client).await.map_err(|error| error.message);
            let took = began.elapsed();
            if sender.send(Notice::Jobs(wanted, found)).await.is_ok() {
                tokio::time::sleep(took * LIST_PAUSE).await;
            }
        }));
    }

    /// Follows the log of this job instead of the one before.
    fn follow(&mut self, id: Option<JobId>) {
        if let Some(before) = self.follower.take() {
            before.abort();
        }
        let Some(id) = id else { return };
        let (mut log, sender) = (self.source.client.logs().follow(&id), self.sender.clone());
        self.follower = Some(tokio::spawn(async move {
            // An error ends it: the snapshots tell that Redis is away, and the job that it is gone.
            while let Ok(Some(lines)) = log.next().await {
                let unfinished = log.unfinished().to_owned();
                if sender.send(Notice::Log(id.clone(), lines, unfinished)).await.is_err() {
                    return;
                }
            }
        }));
    }
}

/// Does what a key asked for. Returns a sentence that says so.
async fn perform(client: &Client, act: Act) -> Result<String, Error> {
    Ok(match act {
        Act::Stop(id) if client.stop_job(&id).await? => format!("stopped job {id}"),
        Act::Stop(id) => format!("told the actor of job {id} to stop it"),
        Act::Retry(id) => format!("job {id} is {} again", client.jobs().retry(&id).await?),
        Act::Pause(chosen) => {
            client.queues().pause(&chosen.all_of_its_name()).await?;
            format!("paused {chosen}")
        }
        Act::Resume(chosen) => {
            client.queues().resume(&chosen.all_of_its_name()).await?;
            format!("resumed {chosen}")
        }
        Act::Drain(actor) => {
            let untold = client.actors().send(&actor, &Control::Drain).await?;
            with_untold(format!("{actor} drains"), &untold)
        }
        Act::Undrain(actor) => {
            let untold = client.actors().send(&actor, &Control::Resume).await?;
            with_untold(format!("{actor} claims jobs again"), &untold)
        }
        Act::Quit | Act::Close | Act::Open(_) | Act::List(_) => String::new(),
    })
}

/// Adds to a sentence the shards that do not answer.
fn with_untold(done: String, untold: &[UnreachedShard]) -> String {
    untold.iter().fold(done, |done, shard| format!("{done}, {shard}"))
}
