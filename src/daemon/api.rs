//! The API of a supervisor: the listener on a thread and a runtime of its own, so that no client and no
//! page delays a duty or the heartbeat.

use std::fmt::Display;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{error, warn};

use crate::client::Client;
use crate::config::{ApiConfig, Config};
use crate::proto::report::Shutdown;
use crate::rpc::{ApiService, Bounds, Caller, Logins, Scope, Scopes, TokenCheck, Tokens, listen};
use crate::trace::Tracer;
use crate::web;

/// The time that the end of the thread may take.
const END_MAX: Duration = Duration::from_secs(4);

/// The variable with the token of `hero dev`, for the supervisor that it starts.
pub const DEV_TOKEN: &str = "HERO_DEV_TOKEN";

pub(super) struct Api {
    thread: JoinHandle<()>,
    shutdown: watch::Sender<Shutdown>,
}

impl Api {
    /// Starts it; `None` if it is switched off, or the machine has no thread for it.
    pub(super) fn start(
        config: watch::Receiver<Arc<Config>>,
        tracer: Option<Tracer>,
    ) -> Option<Self> {
        if config.borrow().api.listen.is_empty() {
            return None;
        }
        let (shutdown, asked) = watch::channel(Shutdown::No);
        let run = move || run(config, tracer, asked);
        let thread = std::thread::Builder::new().name("hero-api".to_owned()).spawn(run);
        let failed = |error: &std::io::Error| cannot("start the thread of the API", error);
        Some(Self { thread: thread.inspect_err(failed).ok()?, shutdown })
    }

    /// Ends it, and waits for that.
    pub(super) async fn end(self) {
        const GLANCE: Duration = Duration::from_millis(5);
        self.shutdown.send_replace(Shutdown::Drain);
        let began = Instant::now();
        while !self.thread.is_finished() {
            if began.elapsed() > END_MAX {
                warn!("the API does not end; left it");
                return;
            }
            tokio::time::sleep(GLANCE).await;
        }
        if self.thread.join().is_err() {
            error!("the thread of the API panicked");
        }
    }
}

fn run(
    config: watch::Receiver<Arc<Config>>,
    tracer: Option<Tracer>,
    shutdown: watch::Receiver<Shutdown>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = |error: &std::io::Error| cannot("start the runtime of the API", error);
    let Ok(runtime) = runtime.inspect_err(failed) else { return };
    runtime.block_on(async {
        let in_force = Arc::clone(&config.borrow());
        // A connection of its own: the duties' connection belongs to their runtime.
        let client = Client::open(&in_force);
        let Ok(client) = client.inspect_err(|error| cannot("open redis for the API", error)) else {
            return;
        };
        let logins = Logins::new(keys(&in_force.api)).map(Arc::new);
        let Ok(logins) = logins.inspect_err(|error| cannot("serve the API", error)) else { return };
        tokio::spawn(follow(client.clone(), Arc::clone(&logins), config.clone()));
        let check = token_check(Tokens::new(client.clone()));
        let service = ApiService::new(client, config, check, logins, tracer);
        let pages = web::pages(service.clone());
        listen::serve(service, pages, shutdown).await;
    });
    runtime.shutdown_background();
}

fn cannot(what: &str, error: &dyn Display) {
    error!("cannot {what}, the duties go on: {error}");
}

/// Takes the address and the login of Redis, and the keys that may log in, of each reload.
async fn follow(client: Client, logins: Arc<Logins>, mut config: watch::Receiver<Arc<Config>>) {
    while config.changed().await.is_ok() {
        let (client, config) = (client.clone(), Arc::clone(&config.borrow_and_update()));
        if let Err(error) = logins.set_keys(keys(&config.api)) {
            cannot("take the keys of api.keys", &error);
        }
        let changed = tokio::task::spawn_blocking(move || client.change_login(&config.redis));
        if let Ok(Err(error)) = changed.await {
            warn!("the API keeps the login of redis: {error}");
        }
    }
}

/// Returns the keys that may log in, each with its caller.
fn keys(settings: &ApiConfig) -> impl Iterator<Item = (String, Caller)> {
    let bound = |names: &[String]| (!names.is_empty()).then(|| names.iter().cloned().collect());
    settings.keys.iter().map(move |(name, of_key)| {
        let scope = |text: &String| serde_json::from_value::<Scope>(text.clone().into()).ok();
        let bounds = Bounds {
            types: bound(&of_key.types),
            groups: bound(&of_key.groups),
            callers: bound(&of_key.callers),
            contexts: bound(&of_key.contexts),
            sees: None,
        };
        let scopes = of_key.scopes.iter().filter_map(scope).collect();
        (of_key.public_key.clone(), Caller { name: name.clone(), scopes, bounds })
    })
}

/// Returns the check of tokens: tokens in Redis, and the token of `hero dev`, known from its start.
fn token_check(tokens: Tokens) -> TokenCheck {
    let tokens = Arc::new(tokens);
    let of_dev = std::env::var(DEV_TOKEN).ok().filter(|token| !token.is_empty());
    Arc::new(move |token: String| {
        let known = of_dev.as_ref().is_some_and(|own| is_same(own.as_bytes(), token.as_bytes()));
        let tokens = Arc::clone(&tokens);
        Box::pin(async move {
            if known {
                let name = "dev".to_owned();
                let (scopes, bounds) = (Scopes::all(), Bounds::default());
                return Ok(Some(Arc::new(Caller { name, scopes, bounds })));
            }
            tokens.check(&token).await
        })
    })
}

/// Compares two texts in a time that tells nothing about their content.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}
