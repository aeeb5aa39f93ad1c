//! Many queues, actors and scheduled jobs: the commands that they cost at rest, the actors that a job wakes, the lists.

use std::process::Command;
use std::time::Duration;

use hero::client::JobBuilder;
use hero::store::{Blocking, Woken};
use jiff::Timestamp;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Stage;
use crate::bench::{Done, accepted};
use crate::performer::{LEASE, Performer};

/// The longest wait for an actor that a job wakes.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two heartbeats of an actor, and its wait for work, by default.
const BEAT: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(2);
const LISTS: [&[&str]; 6] = [
    &["status"],
    &["stats"],
    &["queue", "list"],
    &["actor", "list"],
    &["job", "list", "--status", "scheduled"],
    &["metrics"],
];

/// Looks at what the units of `hero dev` do while there is nothing to do.
pub(super) async fn idle(stage: &mut Stage<'_>, by: usize) -> Done {
    // Until the duties rest.
    sleep(at_rest(Duration::from_secs(40), by)).await;
    let time = at_rest(Duration::from_mins(1), by);
    stage.load("idle units of hero dev", 1, async |_| passes(time).await).await
}

pub(super) async fn many(stage: &mut Stage<'_>, by: usize) -> Done {
    let queues = (10_000 / by).max(1);
    let submit = async |on: &Stage<'_>| {
        let jobs = (0..5 * queues).map(|number| {
            let job = JobBuilder::new("many", "1").group(&format!("g{}", number % queues));
            Ok(job.build()?)
        });
        accepted(on.client.submit_all(&jobs.collect::<Done<Vec<_>>>()?).await?)
    };
    stage.load("queues with five jobs each", queues, submit).await?;

    let number = (1000 / by).max(2);
    let (tell, mut woken) = channel(number);
    let mut actors = Vec::with_capacity(number);
    for instance in 1..=number {
        actors.push(IdleActor::start(stage, instance, &tell).await?);
    }
    let time = at_rest(Duration::from_secs(20), by);
    stage.load("idle actors beside them", number, async |_| passes(time).await).await?;
    let wake = async |on: &Stage<'_>| wake(on, &actors, &mut woken).await;
    stage.load("a job for one of them", 1, wake).await?;

    let size = 1_000_000 / by;
    let at = Timestamp::now() + LEASE;
    let submit = async |on: &Stage<'_>| on.submit("later", size, |job| job.run_at(at)).await;
    stage.load("scheduled for later", size, submit).await?;
    let time = at_rest(Duration::from_secs(40), by);
    stage.load("sweeps beside all of them", 1, async |_| passes(time).await).await?;
    for list in LISTS {
        let name = format!("hero {}", list.join(" "));
        stage.load(&name, 1, async |_| print(list).await).await?;
    }
    for actor in actors {
        actor.wait.abort();
        actor.beat.abort();
    }
    Ok(())
}

fn at_rest(time: Duration, by: usize) -> Duration {
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    (time / by).max(Duration::from_secs(1))
}

async fn passes(time: Duration) -> Done {
    sleep(time).await;
    Ok(())
}

/// An actor that waits for work on a connection of its own, and beats.
struct IdleActor {
    performer: Performer,
    wait: JoinHandle<()>,
    beat: JoinHandle<()>,
}

impl IdleActor {
    async fn start(on: &Stage<'_>, instance: usize, woken: &Sender<(usize, Woken)>) -> Done<Self> {
        let performer = on.performer("idle", instance).await?;
        let mut lists = vec![on.store.keys().control(&performer.present.actor)];
        lists.extend(performer.wakes(&[]));
        let mut link = on.store.blocking();
        // Connects, one after the other.
        link.pop(&lists, Duration::from_millis(1)).await?;
        let (store, boot) = (on.store.clone(), performer.boot.clone());
        let present = [performer.present.clone()];
        let beat = async move {
            let mut ticks = interval(BEAT);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                // The next one tries again.
                drop(store.actors().heartbeat(&boot, LEASE, &present, &[]).await);
            }
        };
        let wait = wait(link, lists, instance - 1, woken.clone());
        Ok(Self { performer, wait: tokio::spawn(wait), beat: tokio::spawn(beat) })
    }
}

async fn wait(mut link: Blocking, lists: Vec<String>, actor: usize, tell: Sender<(usize, Woken)>) {
    while let Ok(popped) = link.pop(&lists, WAIT).await {
        if let Some(woken) = popped
            && tell.send((actor, woken)).await.is_err()
        {
            return;
        }
    }
}

/// Submits one job, and claims and ends it as the actor that it wakes. Fails if it wakes another one too.
async fn wake(on: &Stage<'_>, actors: &[IdleActor], woken: &mut Receiver<(usize, Woken)>) -> Done {
    on.submit("idle", 1, |job| job).await?;
    let (actor, _) = timeout(PATIENCE, woken.recv()).await?.ok_or("no actor waits")?;
    let actor = &actors[actor].performer;
    let claimed = actor.claim(&[], 64).await?;
    actor.end(&claimed, "1").await?;
    let another = timeout(WAIT / 4, woken.recv()).await;
    match (claimed.len(), another) {
        (1, Err(_)) => Ok(()),
        (ends, _) => Err(format!("{ends} jobs ended, or a second actor was woken").into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program as a person starts it")]
async fn print(list: &'static [&'static str]) -> Done {
    let hero = std::env::current_exe()?.with_file_name("hero");
    let run = move || Command::new(hero).args(list).output();
    let done = tokio::task::spawn_blocking(run).await??;
    if !done.status.success() {
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("hero {}: {error}", list.join(" ")).into());
    }
    Ok(())
}
