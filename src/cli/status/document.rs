//! `hero status --json`: a document whose fields stay. docs/status.md describes it.

use serde_json::{Value, json};

use crate::client::{QueueDocument, ShardServer};
use crate::store::{LastHour, RedisState};
use crate::view::Snapshot;

pub(super) fn of(snapshot: &Snapshot) -> Value {
    let paused: Vec<String> = snapshot.pauses.iter().map(ToString::to_string).collect();
    let mut document = json!({
        "paused": paused,
        "redis": redis(&snapshot.address, &snapshot.redis),
        "supervisors": snapshot.supervisors,
        "brokers": snapshot.brokers,
        "actors": actors(snapshot),
        "queues": queues(snapshot),
        "types": types(snapshot),
    });
    if !snapshot.shards.is_empty() {
        let shard = |of: &ShardServer| {
            let mut document = redis(&of.address, &of.redis);
            document["shard"] = json!(of.shard.number());
            document
        };
        document["shards"] = snapshot.shards.iter().map(shard).collect();
    }
    document
}

fn redis(address: &str, redis: &RedisState) -> Value {
    json!({
        "address": address,
        "version": redis.version,
        "role": redis.role,
        "replicas": redis.replicas,
        "memory_used_bytes": redis.memory_used_bytes,
        "memory_max_bytes": redis.memory_max_bytes,
        "eviction_policy": redis.eviction_policy,
        "durable": redis.is_durable(),
        "appends": redis.appends,
        "fsync": redis.fsync,
        "save_points": redis.save_points,
        "dangers": redis.dangers(),
    })
}

fn actors(snapshot: &Snapshot) -> Vec<Value> {
    let counts = snapshot.actor_counts.iter();
    counts
        .map(|(script_type, count)| {
            json!({
                "script_type": script_type,
                "live": count.live,
                "ready": count.ready,
                "draining": count.draining,
                "holding": count.holding,
                "running": count.running,
                "tasks": count.tasks,
            })
        })
        .collect()
}

fn queues(snapshot: &Snapshot) -> Vec<Value> {
    let queues = snapshot.queues.iter();
    queues
        .map(|(state, actors)| {
            let mut document = json!(QueueDocument::from(state));
            document["actors"] = json!(actors);
            document
        })
        .collect()
}

fn types(snapshot: &Snapshot) -> Vec<Value> {
    let types = snapshot.types.iter();
    types
        .map(|of| {
            json!({
                "script_type": of.script_type,
                "waiting_for_prerequisites": of.waiting,
                "scheduled": of.scheduled,
                "due": of.due,
                "waits": of.waits,
                "held": snapshot.held(&of.script_type),
                "dead_letters": of.dead,
                "last_hour": of.hour.map(last_hour),
            })
        })
        .collect()
}

fn last_hour(hour: LastHour) -> Value {
    json!({
        "finished": hour.finished,
        "failed": hour.failed,
        "dead": hour.dead,
        "since_s": hour.since.as_secs_f64(),
    })
}
