//! The pages of a private Redis, served on a free port.

use std::net::SocketAddr;
use std::sync::Arc;

use hero::client::Client;
use hero::config::Config;
use hero::rpc::{Bounds, Caller, MethodTable, Scope, Scopes, TokenCheck};
use hero::web::{Site, SiteSettings, routes};

use crate::support::Redis;

/// The token with all scopes.
pub(crate) const OPERATOR: &str = "operator-token";
/// The token that may only read.
pub(crate) const READER: &str = "reader-token";

/// Pages that are served until the end of the test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    pub(crate) fn on(redis: &Redis, path: &str) -> Self {
        let config = Config { redis: redis.config("hero"), ..Config::default() };
        let client = Client::open(&config).expect("a client");
        let settings =
            SiteSettings { config: Arc::new(config), path: path.to_owned(), is_secure: false };
        let table = Arc::new(MethodTable::new());
        let check: TokenCheck = Arc::new(|token| Box::pin(async move { Ok(caller(&token)) }));
        let site = Site::new(client, "redis".into(), table, check, settings);
        let pages = match path {
            "" => routes(site),
            path => axum::Router::new().nest(&format!("{path}/"), routes(site)),
        };
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
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the address of a page.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn caller(token: &str) -> Option<Arc<Caller>> {
    let (name, scopes): (_, Scopes) = match token {
        OPERATOR => ("operator", Scopes::all()),
        READER => ("reader", [Scope::Read].into_iter().collect()),
        _ => return None,
    };
    Some(Arc::new(Caller { name: name.to_owned(), scopes, bounds: Bounds::default() }))
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
