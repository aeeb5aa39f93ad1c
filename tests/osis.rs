//! Objects of scripts: the store on a real Redis, compared with a model, and the script functions in
//! the real program.

mod declared;
mod heroscript;
mod hostile;
mod indexing;
mod operators;
mod queries;
mod redis_client;
mod scripts;
mod storage;

use hero::config::OsisConfig;
use hero::proto::object::{
    Answer, Ask, Change, Context, Object, ObjectError, ObjectId, ObjectType, Query, Write, Written,
};
use hero::store::Store;
use serde_json::Value;

use crate::support::Redis;

/// A private Redis, and the objects of one context on it.
struct ObjectStore {
    redis: Redis,
    store: Store,
    context: Context,
    config: OsisConfig,
}

impl ObjectStore {
    /// Starts one with indexes on these fields of the type `thing`.
    fn with_indexes(fields: &[&str]) -> Self {
        let redis = Redis::start();
        let store = Store::open(&redis.config("hero")).expect("valid settings");
        Self { redis, store, context: Context::default(), config: indexes(fields) }
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, ObjectError> {
        self.store.objects(&self.context, ask, &self.config).await
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>, ObjectError> {
        match self.ask(Ask::Write(writes)).await? {
            Answer::Written(written) => Ok(written),
            other => panic!("{other:?}"),
        }
    }

    async fn set(&self, id: &str, body: Value) -> Written {
        self.write(vec![setting(id, body, None)]).await.expect("written")[0]
    }

    async fn get(&self, id: &str) -> Option<Object> {
        match self.ask(Ask::Get(thing(), id_of(id))).await.expect("read") {
            Answer::Object(object) => object,
            other => panic!("{other:?}"),
        }
    }

    async fn find(&self, query: &str) -> Result<Vec<Object>, ObjectError> {
        let query = Query::parse(query).expect("a legal query");
        let ask = Ask::Find { object_type: thing(), query, after: None, limit: 10_000 };
        match self.ask(ask).await? {
            Answer::Objects(objects) => Ok(objects),
            other => panic!("{other:?}"),
        }
    }

    async fn found(&self, query: &str) -> Vec<String> {
        let objects = self.find(query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        objects.into_iter().map(|object| object.id.to_string()).collect()
    }
}

fn indexes(fields: &[&str]) -> OsisConfig {
    let fields = fields.iter().map(|field| field.parse().expect("a legal field")).collect();
    OsisConfig { index: [(thing(), fields)].into(), ..OsisConfig::default() }
}

fn thing() -> ObjectType {
    "thing".parse().expect("a legal type")
}

fn id_of(id: &str) -> ObjectId {
    id.parse().expect("a legal id")
}

fn setting(id: &str, body: Value, expected: Option<u64>) -> Write {
    let Value::Object(body) = body else { panic!("{body} is not a map") };
    let change = Change::Set { body, created_ms: None };
    Write { object_type: thing(), id: id_of(id), expected, change }
}

fn deleting(id: &str, expected: Option<u64>) -> Write {
    Write { object_type: thing(), id: id_of(id), expected, change: Change::Delete }
}
