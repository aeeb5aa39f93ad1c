//! The pages of a private Redis, served on a free port.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hero::client::Client;
use hero::config::Config;
use hero::rpc::{Arrival, Bounds, Caller, MethodTable, Scope, Scopes, TokenCheck};
use hero::web::{Site, SiteSettings, routes};
use tokio::sync::watch;

use crate::support::{Hero, Redis};

/// The token with all scopes.
pub(crate) const OPERATOR: &str = "operator-token";
/// The token that may only read.
pub(crate) const READER: &str = "reader-token";
/// The token that may only read what concerns jobs of the type bash.
pub(crate) const BOUND: &str = "bound-token";

/// Pages that are served until the end of the test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    /// The configuration, as a reload changes it.
    pub(crate) config: watch::Sender<Arc<Config>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    /// Serves the pages of a namespace with the default settings.
    pub(crate) fn on(redis: &Redis, path: &str) -> Self {
        Self::with(Config { redis: redis.config("hero"), ..Config::default() }, path)
    }

    /// Serves the pages with the settings of a program.
    pub(crate) fn of(hero: &Hero, path: &str) -> Self {
        let config = Config::load(Some(&hero.config_file())).expect("a legal configuration");
        Self::with(config, path)
    }

    fn with(config: Config, path: &str) -> Self {
        let client = Client::open(&config).expect("a client");
        let (config, in_force) = watch::channel(Arc::new(config));
        let settings = SiteSettings { config: in_force, path: path.to_owned() };
        let table = Arc::new(MethodTable::new());
        let check: TokenCheck = Arc::new(|token| Box::pin(async move { Ok(caller(&token)) }));
        let site = Site::new(client, "redis".into(), table, check, settings);
        let pages = match path {
            "" => routes(site),
            path => axum::Router::new().nest(&format!("{path}/"), routes(site)),
        };
        let pages = pages.layer(axum::middleware::from_fn(arrive));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.spawn(async move { axum::serve(listener, pages).await });
            // Open event streams end with the runtime.
            let _ = runtime.block_on(stopped);
        });
        Self { address, config, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the address of a page.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Tells the pages how a request arrived, as the listener does: over TLS with the header `X-Tls`.
async fn arrive(mut request: Request, next: Next) -> Response {
    let is_secure = request.headers().contains_key("x-tls");
    request.extensions_mut().insert(Arrival { peer: "test".into(), is_secure });
    next.run(request).await
}

fn caller(token: &str) -> Option<Arc<Caller>> {
    let of_bash = || Bounds { types: Some(["bash".to_owned()].into()), ..Bounds::default() };
    let (name, scopes, bounds): (_, Scopes, _) = match token {
        OPERATOR => ("operator", Scopes::all(), Bounds::default()),
        READER => ("reader", [Scope::Read].into_iter().collect(), Bounds::default()),
        BOUND => ("bound", [Scope::Read].into_iter().collect(), of_bash()),
        _ => return None,
    };
    Some(Arc::new(Caller { name: name.to_owned(), scopes, bounds }))
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
