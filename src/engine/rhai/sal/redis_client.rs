//! The Redis of `sal.redis_url`. Keys of Hero's own namespace are rejected.

use ::rhai::{Array, Dynamic, INT, ImmutableString, Map};

use super::context::{CallError, CallResult, RhaiResult, SalJob, operation};
use crate::engine::rhai::functions::Functions;
use crate::proto::script_reply::RedisReply;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "redisclient",
        "The Redis of sal.redis_url in the configuration. Keys of Hero's own namespace are rejected \
         on every server. Integration tests run these examples on a real Redis.",
    );
    values(functions);
    hashes(functions);
    lists(functions);
}

fn values(functions: &mut Functions<'_>) {
    functions.act(
        "redis_ping",
        "Pings Redis and returns PONG.",
        "\nredis_ping()\n// → PONG",
        |job| text(job, job.redis(&["PING"])?),
    );
    functions.act(
        "redis_reset",
        "Returns true if Redis answers. A broken connection is replaced by itself.",
        "\nredis_reset()\n// → true",
        |job| job.redis(&["PING"]).map(|_| true),
    );
    functions.act_with(
        "redis_set",
        ["key", "value"],
        "Sets a key to a string, and returns true.",
        "\nredis_set(\"greeting\", \"hello\")\n// → true",
        |job, key, value: Dynamic| {
            job.redis(&["SET", job.allowed_key(key)?, &value.to_string()])?;
            Ok(true)
        },
    );
    functions.act_on(
        "redis_get",
        "key",
        "Returns the string of a key; empty if the key does not exist.",
        "\nredis_set(\"greeting\", \"hello\");\n[redis_get(\"greeting\"), redis_get(\"nothing\")]\n// → [\"hello\",\"\"]",
        |job, key| {
                fits(job, &job.redis(&["STRLEN", job.allowed_key(key)?])?, job.run.limits.string_size_max)?;
                text_or_empty(job, job.redis(&["GET", key])?)
            },
    );
    functions.act_on(
        "redis_del",
        "key",
        "Deletes a key, and returns whether it existed.",
        "\nredis_set(\"gone\", 1);\n[redis_del(\"gone\"), redis_del(\"gone\")]\n// → [true,false]",
        |job, key| Ok(number(&job.redis(&["DEL", job.allowed_key(key)?])?)? > 0),
    );
}

fn hashes(functions: &mut Functions<'_>) {
    functions.add(
        "redis_hset",
        ["key", "field", "value"],
        "Sets a field of a hash, and returns true.",
        "\nredis_hset(\"h\", \"a\", 1)\n// → true",
        |key: &str, field: &str, value: Dynamic| {
            operation("redis_hset", key, |job| {
                let words = ["HSET", job.allowed_key(key)?, field, &value.to_string()];
                number(&job.redis(&words)?)?;
                Ok(true)
            })
        },
    );
    functions.act_with(
        "redis_hget",
        ["key", "field"],
        "Returns a field of a hash; empty if the field does not exist.",
        "\nredis_hset(\"h\", \"a\", \"x\");\nredis_hget(\"h\", \"a\")\n// → x",
        |job, key, field: ImmutableString| {
            let size = job.redis(&["HSTRLEN", job.allowed_key(key)?, &field])?;
            fits(job, &size, job.run.limits.string_size_max)?;
            text_or_empty(job, job.redis(&["HGET", key, &field])?)
        },
    );
    functions.act_on(
        "redis_hgetall",
        "key",
        "Returns all fields of a hash as a map of strings; an empty map if the hash does not exist.",
        "\nredis_del(\"h\");\nredis_hset(\"h\", \"a\", 1);\nredis_hset(\"h\", \"b\", 2);\nredis_hgetall(\"h\")\n// → {\"a\":\"1\",\"b\":\"2\"}",
        all,
    );
    functions.act_with(
        "redis_hdel",
        ["key", "field"],
        "Deletes a field of a hash, and returns whether it existed.",
        "\nredis_hset(\"h\", \"a\", 1);\n[redis_hdel(\"h\", \"a\"), redis_hdel(\"h\", \"a\")]\n// → [true,false]",
        |job, key, field: ImmutableString| {
                Ok(number(&job.redis(&["HDEL", job.allowed_key(key)?, &field])?)? > 0)
            },
    );
}

fn lists(functions: &mut Functions<'_>) {
    functions.act_with(
        "redis_rpush",
        ["key", "value"],
        "Appends a string to a list, and returns the new length.",
        "\nredis_del(\"l\");\nredis_rpush(\"l\", \"a\");\nredis_rpush(\"l\", \"b\")\n// → 2",
        |job, key, value| push(job, "RPUSH", key, &value),
    );
    functions.act_with(
        "redis_lpush",
        ["key", "value"],
        "Prepends a string to a list, and returns the new length.",
        "\nredis_del(\"l\");\nredis_lpush(\"l\", \"a\");\nredis_lpush(\"l\", \"b\");\nredis_lrange(\"l\", 0, -1)\n// → [\"b\",\"a\"]",
        |job, key, value| push(job, "LPUSH", key, &value),
    );
    functions.act_on(
        "redis_llen",
        "key",
        "Returns the length of a list; 0 if the list does not exist.",
        "\nredis_del(\"l\");\nredis_llen(\"l\")\n// → 0",
        |job, key| number(&job.redis(&["LLEN", job.allowed_key(key)?])?),
    );
    functions.add(
        "redis_lrange",
        ["key", "start", "stop"],
        "Returns the strings of a list from one index to another, both included; -1 is the last \
         index.",
        "\nredis_del(\"l\");\nfor text in [\"a\", \"b\", \"c\"] { redis_rpush(\"l\", text); }\nredis_lrange(\"l\", 1, -1)\n// → [\"b\",\"c\"]",
        range,
    );
}

impl SalJob<'_> {
    fn redis(self, words: &[&str]) -> CallResult<RedisReply> {
        let Some(redis) = &self.settings.redis else {
            return Err("not allowed: sal.redis_url is not set".into());
        };
        let answers = redis.run(words.iter().map(|word| word.as_bytes().to_vec()).collect());
        self.receive(&answers, "the actor stopped before Redis answered")?
            .map_err(CallError::Failed)
    }

    fn allowed_key(self, key: &str) -> CallResult<&str> {
        if self.settings.redis.as_ref().is_some_and(|redis| redis.is_own(key.as_bytes())) {
            return Err("not allowed: the key is in Hero's own namespace".into());
        }
        Ok(key)
    }
}

fn push(job: SalJob<'_>, command: &str, key: &str, value: &Dynamic) -> CallResult<INT> {
    number(&job.redis(&[command, job.allowed_key(key)?, &value.to_string()])?)
}

fn range(key: &str, start: INT, stop: INT) -> RhaiResult<Array> {
    operation("redis_lrange", key, |job| {
        let len = number(&job.redis(&["LLEN", job.allowed_key(key)?])?)?;
        let from_start = |index: INT| if index < 0 { index.saturating_add(len) } else { index };
        let (first, last) = (from_start(start).max(0), from_start(stop).min(len - 1));
        let count = last.saturating_sub(first).saturating_add(1).max(0);
        fits(job, &RedisReply::Number(count), job.run.limits.array_len_max as u64)?;
        match job.redis(&["LRANGE", key, &first.to_string(), &last.to_string()])? {
            RedisReply::List(items) => {
                items.into_iter().map(|reply| Ok(text(job, reply)?.into())).collect()
            }
            _ => Err(UNEXPECTED.into()),
        }
    })
}

fn all(job: SalJob<'_>, key: &str) -> CallResult<Map> {
    let len = job.redis(&["HLEN", job.allowed_key(key)?])?;
    fits(job, &len, job.run.limits.array_len_max as u64)?;
    let RedisReply::List(flat) = job.redis(&["HGETALL", key])? else {
        return Err(UNEXPECTED.into());
    };
    let mut flat = flat.into_iter();
    let mut map = Map::new();
    while let (Some(field), Some(value)) = (flat.next(), flat.next()) {
        map.insert(text(job, field)?.into(), text(job, value)?.into());
    }
    Ok(map)
}

const UNEXPECTED: &str = "unexpected reply from Redis";

fn fits(job: SalJob<'_>, size: &RedisReply, max: u64) -> CallResult<()> {
    job.check_stop()?;
    let size = number(size)?;
    if u64::try_from(size).is_ok_and(|size| size > max) {
        return Err(format!("larger than the limit of {max} of a script's values").into());
    }
    Ok(())
}

fn number(reply: &RedisReply) -> CallResult<INT> {
    match reply {
        RedisReply::Number(number) => Ok(*number),
        _ => Err(UNEXPECTED.into()),
    }
}

fn text(job: SalJob<'_>, reply: RedisReply) -> CallResult<String> {
    match reply {
        RedisReply::Text(bytes) if bytes.len() as u64 > job.run.limits.string_size_max => {
            Err("a string is longer than the limit of a script's strings".into())
        }
        RedisReply::Text(bytes) => String::from_utf8(bytes).map_err(|_| "not UTF-8 text".into()),
        _ => Err(UNEXPECTED.into()),
    }
}

fn text_or_empty(job: SalJob<'_>, reply: RedisReply) -> CallResult<String> {
    match reply {
        RedisReply::Nil => Ok(String::new()),
        reply => text(job, reply),
    }
}
