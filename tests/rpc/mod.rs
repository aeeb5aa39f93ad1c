//! The API: the methods of its table, called as the listener calls them, on a real Redis with the real
//! actor.

mod access;
mod discover;
mod mcp;
mod methods;
mod nouns;
mod older;
mod shards;

use std::collections::BTreeSet;
use std::sync::Arc;

use hero::client::Client;
use hero::config::Config;
use hero::rpc::{Bounds, CallContext, Caller, MethodTable, RpcError, Scope, Scopes};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::{Hero, Process, Redis};

/// The table of methods over the jobs of a private Redis.
struct Api {
    redis: Redis,
    hero: Hero,
    _units: Vec<Process>,
    table: MethodTable,
    client: Client,
    config: Arc<Config>,
    runtime: Runtime,
}

impl Api {
    /// Starts Redis and these units.
    fn start(units: &[&str]) -> Self {
        Self::with(units, |hero| hero)
    }

    fn with(units: &[&str], set: impl FnOnce(Hero) -> Hero) -> Self {
        let redis = Redis::start();
        let hero = set(Hero::on(&redis).set("job.retries", "0"));
        let units = units.iter().map(|unit| hero.actor(unit).start()).collect();
        let config = Config::load(Some(&hero.config_file())).expect("a legal configuration");
        let client = Client::open(&config).expect("a client");
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let (table, config) = (MethodTable::new(), Arc::new(config));
        Self { redis, hero, _units: units, table, client, config, runtime }
    }

    /// Calls a method as this caller.
    fn call_as(&self, caller: &Caller, method: &str, params: Value) -> Result<Value, RpcError> {
        let context = CallContext {
            client: self.client.clone(),
            address: "redis".into(),
            config: Arc::clone(&self.config),
            caller: Arc::new(caller.clone()),
        };
        self.runtime.block_on(self.table.call(context, method, params))
    }

    /// Calls a method as a caller with all scopes. It must succeed.
    #[track_caller]
    fn call(&self, method: &str, params: Value) -> Value {
        match self.call_as(&admin(), method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error} {:?}", error.data),
        }
    }

    /// Calls a method that must fail, and returns the code of its error and the error.
    #[track_caller]
    fn fails(&self, caller: &Caller, method: &str, params: Value) -> (i32, RpcError) {
        let error = self.call_as(caller, method, params).expect_err(method);
        (error.code, error)
    }
}

fn admin() -> Caller {
    Caller { name: "root".to_owned(), scopes: Scopes::all(), bounds: Bounds::default() }
}

fn caller(name: &str, scopes: &[Scope]) -> Caller {
    let scopes = scopes.iter().copied().collect();
    Caller { name: name.to_owned(), scopes, bounds: Bounds::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "bounds are options")]
fn words(words: &[&str]) -> Option<BTreeSet<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}
