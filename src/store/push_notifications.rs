//! Push notifications: Redis reports each list that a program has pushed to. Nothing is popped, and Redis needs no
//! configuration: `CLIENT TRACKING` in broadcasting mode, on a connection of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, timeout};
use tracing::{debug, warn};

use super::adopt::START_PATIENCE;
use super::store_error::CONNECTING;
use super::{
    Adopted, AdoptionRules, AfterAdoption, Backoff, RedisStore, Result, Store, StoreError,
};
use crate::proto::target::ActorId;

/// The keys that may wait. With more of them, all lists are checked.
const WAITING_MAX: usize = 1000;
/// The time between two checks while Redis does not report pushes.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// The pause before Redis is asked again after it has refused to report pushes.
const REFUSED_FOR: Duration = Duration::from_mins(1);
/// The times between two steps on one list: longer while they find nothing, as Hero pushes itself.
const STEP_EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));
/// The time between two pings, which notice a connection that is lost.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The time between two checks of the presence of one actor.
const ACTOR_EVERY: Duration = Duration::from_mins(1);
const REMEMBERED_MAX: usize = 10_000;

/// The keys that Redis has reported, and that are not checked yet.
#[derive(Default)]
struct Heard {
    keys: Mutex<BTreeSet<String>>,
    has_rung: Notify,
}

/// A connection on which Redis reports pushes.
struct PushNotifications {
    connection: MultiplexedConnection,
    heard: Arc<Heard>,
}

impl Heard {
    /// Takes a message of Redis. One without keys says that all may have changed.
    fn take(&self, message: &PushInfo) {
        let is_lost = message.kind == PushKind::Disconnection;
        if message.kind != PushKind::Invalidate && !is_lost {
            return;
        }
        let mut keys = self.keys.lock();
        match message.data.first() {
            Some(Value::Array(told)) if !is_lost => {
                for key in told {
                    if let Value::BulkString(key) = key
                        && keys.len() < WAITING_MAX
                    {
                        keys.insert(String::from_utf8_lossy(key).into_owned());
                    }
                }
            }
            _ => drop(keys.insert(String::new())),
        }
        drop(keys);
        self.has_rung.notify_one();
    }

    fn taken(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.keys.lock())
    }
}

impl PushNotifications {
    /// Connects, and asks Redis to report the keys that programs write.
    async fn hang(store: &Store) -> Result<Self> {
        let heard = Arc::new(Heard::default());
        let of_connection = Arc::clone(&heard);
        let take = move |message: PushInfo| -> Result<(), redis::aio::SendError> {
            of_connection.take(&message);
            Ok(())
        };
        let server = &store.link.server;
        let mut connection = server.way().connect_for_pushes(take).await?;
        let mut command = redis::cmd("CLIENT");
        command.arg("TRACKING").arg("ON").arg("BCAST").arg("NOLOOP");
        for start in store.keys().written_by_programs() {
            command.arg("PREFIX").arg(start);
        }
        let asked: Result<(), _> = command.query_async(&mut connection).await;
        asked.map_err(|error| StoreError::new(&server.address(), CONNECTING, &error))?;
        Ok(Self { connection, heard })
    }

    async fn is_open(&mut self) -> bool {
        redis::cmd("PING").query_async::<Value>(&mut self.connection).await.is_ok()
    }
}

/// The lists to look at, each when it is due.
struct Rounds<'a> {
    store: &'a Store,
    due: HashMap<String, Instant>,
    /// When each list was looked at, and the time until the next look.
    looked_at: HashMap<String, (Instant, Duration)>,
    actors: HashMap<ActorId, Instant>,
}

impl<'a> Rounds<'a> {
    fn new(store: &'a Store) -> Self {
        let (due, looked_at, actors) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { store, due, looked_at, actors }
    }

    async fn note(&mut self, keys: BTreeSet<String>) -> Result<()> {
        let now = Instant::now();
        let is_all = keys.len() >= WAITING_MAX || keys.contains("");
        let mut actors = Vec::new();
        for key in keys {
            if let Some(actor) = self.store.keys().actor_of_presence(&key) {
                let seen = self.actors.get(&actor);
                if seen.is_none_or(|seen| now.duration_since(*seen) >= ACTOR_EVERY) {
                    actors.push(actor);
                }
            } else if !key.is_empty() {
                self.make_due(key, now);
            }
        }
        if is_all {
            for list in self.store.legacy().unadopted().await? {
                self.make_due(list, now);
            }
        }
        if !actors.is_empty() {
            match self.store.legacy().note_actors(&actors).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => debug!("noting actors of foreign programs: {error}"),
                Ok(_) => {}
            }
            forget_if_many(&mut self.actors);
            self.actors.extend(actors.into_iter().map(|actor| (actor, now)));
        }
        Ok(())
    }

    fn make_due(&mut self, list: String, now: Instant) {
        let next = self.looked_at.get(&list).map_or(now, |(at, pause)| *at + *pause);
        self.due.entry(list).or_insert(next.max(now));
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes one step on each list that is due.
    async fn go(&mut self, rules: AdoptionRules) -> Result<()> {
        let now = Instant::now();
        let due: Vec<String> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(list, _)| list.clone()).collect();
        for list in due {
            let adopted = match self.store.legacy().adopt(&list, rules).await {
                Err(error) if error.is_outage() => return Err(error),
                // Not permitted, or a key of a wrong type: other lists go on.
                Err(error) => {
                    debug!(key = %list, "adopting jobs: {error}");
                    Adopted::default()
                }
                Ok(adopted) => adopted,
            };
            self.due.remove(&list);
            let is_idle = adopted.jobs + adopted.removed == 0;
            let before = self.looked_at.get(&list).map_or(STEP_EVERY.0, |(_, pause)| *pause);
            let pause = if is_idle { (before * 2).min(STEP_EVERY.1) } else { STEP_EVERY.0 };
            let at = Instant::now();
            forget_if_many(&mut self.looked_at);
            self.looked_at.insert(list.clone(), (at, pause));
            match adopted.next {
                AfterAdoption::Nothing => {}
                AfterAdoption::More => drop(self.due.insert(list, at)),
                AfterAdoption::Later => drop(self.due.insert(list, at + START_PATIENCE)),
            }
        }
        Ok(())
    }
}

fn forget_if_many<K, V>(remembered: &mut HashMap<K, V>) {
    if remembered.len() >= REMEMBERED_MAX {
        remembered.clear();
    }
}

/// Adopts what programs push, as soon as they do, until the future is dropped. Where Redis does not report, it
/// looks at the lists again and again. `listening` is notified once no push is missed any more.
pub async fn adopt_what_is_pushed(
    store: &Store,
    rules: impl Fn() -> AdoptionRules,
    listening: &Notify,
) {
    let (mut backoff, mut is_refused) = (Backoff::default(), false);
    loop {
        let served = match PushNotifications::hang(store).await {
            Ok(bell) => {
                backoff.succeeded();
                is_refused = false;
                listening.notify_one();
                listen(store, bell, &rules).await
            }
            Err(error) if error.is_outage() => Err(error),
            Err(error) => {
                // A login that is refused is reported elsewhere.
                let is_new = !is_refused && store.ping().await.is_ok();
                is_refused |= is_new;
                if is_new {
                    warn!(
                        "Redis does not tell of pushes by plain commands ({error}): their lists are looked at every {} ms; allow CLIENT TRACKING and HELLO",
                        CHECK_EVERY.as_millis()
                    );
                }
                listening.notify_one();
                look_again_and_again(store, &rules).await
            }
        };
        if let Err(error) = served {
            debug!("hearing of pushes: {error}");
            sleep(backoff.failed()).await;
        }
    }
}

/// Listens until the connection is lost.
async fn listen(
    store: &Store,
    mut bell: PushNotifications,
    rules: &impl Fn() -> AdoptionRules,
) -> Result<()> {
    let mut rounds = Rounds::new(store);
    let heard_by = Arc::clone(&bell.heard);
    // Earlier pushes.
    rounds.note(BTreeSet::from([String::new()])).await?;
    loop {
        rounds.go(rules()).await?;
        let rung = heard_by.has_rung.notified();
        match rounds.next_due() {
            Some(due) => {
                tokio::select! {
                    () = rung => {}
                    () = sleep_until(due.into()) => {}
                }
            }
            None if timeout(PING_EVERY, rung).await.is_err() && !bell.is_open().await => {
                return Ok(());
            }
            None => {}
        }
        let heard = heard_by.taken();
        if heard.contains("") && !bell.is_open().await {
            return Ok(());
        }
        rounds.note(heard).await?;
    }
}

/// Looks at the lists, until it is time to ask Redis again.
async fn look_again_and_again(store: &Store, rules: &impl Fn() -> AdoptionRules) -> Result<()> {
    let (mut rounds, until) = (Rounds::new(store), Instant::now() + REFUSED_FOR);
    while Instant::now() < until {
        rounds.note(BTreeSet::from([String::new()])).await?;
        rounds.go(rules()).await?;
        sleep(CHECK_EVERY).await;
    }
    Ok(())
}

impl RedisStore<'_> {
    /// Returns the reason why Redis does not report pushes by plain commands, if it does not.
    pub async fn receives_push_notifications(self) -> Result<Option<String>> {
        match PushNotifications::hang(self.store).await {
            Ok(_) => Ok(None),
            Err(error) if error.is_outage() => Err(error),
            Err(error) => Ok(Some(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::keys::Keys;

    fn message(keys: Option<&[&str]>) -> PushInfo {
        let bulk = |key: &&str| Value::BulkString(key.as_bytes().to_vec());
        let data = keys.map_or(Value::Nil, |keys| Value::Array(keys.iter().map(bulk).collect()));
        PushInfo { kind: PushKind::Invalidate, data: vec![data] }
    }

    #[test]
    fn keys_are_gathered_and_a_flush_means_all_of_them() {
        let heard = Heard::default();
        heard.take(&message(Some(&["a", "b"])));
        heard.take(&message(Some(&["b"])));
        assert_eq!(heard.taken(), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        heard.take(&message(None));
        assert_eq!(heard.taken(), BTreeSet::from([String::new()]));
    }

    #[test]
    fn keys_that_wait_are_bounded() {
        let heard = Heard::default();
        for number in 0..2 * WAITING_MAX {
            heard.take(&message(Some(&[&number.to_string()])));
        }
        assert_eq!(heard.taken().len(), WAITING_MAX);
    }

    #[test]
    fn presence_of_an_actor_is_no_list() {
        let keys = Keys::default();
        assert!(keys.actor_of_presence("hero:meta:actor:inst:osis:io:3").is_some());
        assert!(keys.actor_of_presence("hero:q:work:type:osis").is_none());
    }
}
