//! A Redis that the configuration names. Hero's own keys are nobody's there.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use ::rhai::{Array, Dynamic, INT, Map};

use super::context::{CallError, CallResult, RhaiResult, SalJob, operation};
use crate::engine::rhai::functions::Functions;
use crate::proto::script_reply::RedisReply;

/// How often a wait looks whether the job must end.
const SLICE: Duration = Duration::from_millis(50);

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "redisclient",
        "The Redis that sal.redis_url of the configuration names. Keys of Hero's own namespace are \
         refused, wherever they are. Integration tests run these examples on a real one.",
    );
    values(functions);
    hashes(functions);
    lists(functions);
}

fn values(functions: &mut Functions<'_>) {
    functions.add(
        "redis_ping",
        [],
        "Asks for a sign of life, which is PONG.",
        "\nredis_ping()\n// → PONG",
        || operation("redis_ping", "", |job| text(job, job.redis(&["PING"])?)),
    );
    functions.add(
        "redis_set",
        ["key", "value"],
        "Sets a key to a text, and gives OK.",
        "\nredis_set(\"greeting\", \"hello\")\n// → OK",
        |key: &str, value: Dynamic| {
            operation("redis_set", key, |job| {
                text(job, job.redis(&["SET", job.free(key)?, &value.to_string()])?)
            })
        },
    );
    functions
        .add(
            "redis_get",
            ["key"],
            "Gives the text of a key, or () if there is none.",
            "\nredis_set(\"greeting\", \"hello\");\n[redis_get(\"greeting\"), redis_get(\"nothing\") == ()]\n// → [\"hello\",true]",
            |key: &str| {
                operation("redis_get", key, |job| {
                    fits(job, &job.redis(&["STRLEN", job.free(key)?])?, job.settings.bytes_max)?;
                    text_or_unit(job, job.redis(&["GET", key])?)
                })
            },
        )
        .returns("string or ()");
    functions.add(
        "redis_del",
        ["key"],
        "Deletes a key, and tells whether it was there.",
        "\nredis_set(\"gone\", 1);\n[redis_del(\"gone\"), redis_del(\"gone\")]\n// → [true,false]",
        |key: &str| {
            operation(
                "redis_del",
                key,
                |job| Ok(number(&job.redis(&["DEL", job.free(key)?])?)? > 0),
            )
        },
    );
}

fn hashes(functions: &mut Functions<'_>) {
    functions.add(
        "redis_hset",
        ["key", "field", "value"],
        "Sets a field of a hash, and tells whether it is a new one.",
        "\nredis_del(\"h\");\n[redis_hset(\"h\", \"a\", 1), redis_hset(\"h\", \"a\", 2)]\n// → [true,false]",
        |key: &str, field: &str, value: Dynamic| {
            operation("redis_hset", key, |job| {
                let words = ["HSET", job.free(key)?, field, &value.to_string()];
                Ok(number(&job.redis(&words)?)? > 0)
            })
        },
    );
    functions
        .add(
            "redis_hget",
            ["key", "field"],
            "Gives a field of a hash, or () if there is none.",
            "\nredis_hset(\"h\", \"a\", \"x\");\nredis_hget(\"h\", \"a\")\n// → x",
            |key: &str, field: &str| {
                operation("redis_hget", key, |job| {
                    let size = job.redis(&["HSTRLEN", job.free(key)?, field])?;
                    fits(job, &size, job.settings.bytes_max)?;
                    text_or_unit(job, job.redis(&["HGET", key, field])?)
                })
            },
        )
        .returns("string or ()");
    functions.add(
        "redis_hgetall",
        ["key"],
        "Gives all fields of a hash as a map of texts; an empty one if there is no such hash.",
        "\nredis_del(\"h\");\nredis_hset(\"h\", \"a\", 1);\nredis_hset(\"h\", \"b\", 2);\nredis_hgetall(\"h\")\n// → {\"a\":\"1\",\"b\":\"2\"}",
        |key: &str| operation("redis_hgetall", key, |job| all(job, key)),
    );
    functions.add(
        "redis_hdel",
        ["key", "field"],
        "Deletes a field of a hash, and tells whether it was there.",
        "\nredis_hset(\"h\", \"a\", 1);\n[redis_hdel(\"h\", \"a\"), redis_hdel(\"h\", \"a\")]\n// → [true,false]",
        |key: &str, field: &str| {
            operation("redis_hdel", key, |job| {
                Ok(number(&job.redis(&["HDEL", job.free(key)?, field])?)? > 0)
            })
        },
    );
}

fn lists(functions: &mut Functions<'_>) {
    functions.add(
        "redis_rpush",
        ["key", "value"],
        "Puts a text at the end of a list, and gives its length then.",
        "\nredis_del(\"l\");\nredis_rpush(\"l\", \"a\");\nredis_rpush(\"l\", \"b\")\n// → 2",
        |key: &str, value: Dynamic| push("redis_rpush", "RPUSH", key, &value),
    );
    functions.add(
        "redis_lpush",
        ["key", "value"],
        "Puts a text at the start of a list, and gives its length then.",
        "\nredis_del(\"l\");\nredis_lpush(\"l\", \"a\");\nredis_lpush(\"l\", \"b\");\nredis_lrange(\"l\", 0, -1)\n// → [\"b\",\"a\"]",
        |key: &str, value: Dynamic| push("redis_lpush", "LPUSH", key, &value),
    );
    functions.add(
        "redis_llen",
        ["key"],
        "Gives the length of a list; 0 if there is no such list.",
        "\nredis_del(\"l\");\nredis_llen(\"l\")\n// → 0",
        |key: &str| {
            operation("redis_llen", key, |job| number(&job.redis(&["LLEN", job.free(key)?])?))
        },
    );
    functions.add(
        "redis_lrange",
        ["key", "start", "stop"],
        "Gives the texts of a list from one place to another, both of them included; -1 is the \
         last place.",
        "\nredis_del(\"l\");\nfor text in [\"a\", \"b\", \"c\"] { redis_rpush(\"l\", text); }\nredis_lrange(\"l\", 1, -1)\n// → [\"b\",\"c\"]",
        range,
    );
}

impl SalJob<'_> {
    /// Runs a command, and waits for its answer or for the end of the job.
    fn redis(self, words: &[&str]) -> CallResult<RedisReply> {
        let Some(redis) = &self.settings.redis else {
            return Err("not allowed: sal.redis_url names no redis".into());
        };
        let answer = redis.run(words.iter().map(|word| word.as_bytes().to_vec()).collect());
        loop {
            match answer.recv_timeout(SLICE) {
                Ok(answer) => return answer.map_err(CallError::Failed),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the actor ends before redis has answered".into());
                }
                Err(RecvTimeoutError::Timeout) => self.check_stop()?,
            }
        }
    }

    /// The key, unless it is Hero's own.
    fn free(self, key: &str) -> CallResult<&str> {
        if self.settings.redis.as_ref().is_some_and(|redis| redis.is_own(key.as_bytes())) {
            return Err("not allowed: keys of this namespace are Hero's own".into());
        }
        Ok(key)
    }
}

fn push(name: &str, command: &str, key: &str, value: &Dynamic) -> RhaiResult<INT> {
    operation(name, key, |job| {
        number(&job.redis(&[command, job.free(key)?, &value.to_string()])?)
    })
}

fn range(key: &str, start: INT, stop: INT) -> RhaiResult<Array> {
    operation("redis_lrange", key, |job| {
        let len = number(&job.redis(&["LLEN", job.free(key)?])?)?;
        let from_start = |place: INT| if place < 0 { place.saturating_add(len) } else { place };
        let (first, last) = (from_start(start).max(0), from_start(stop).min(len - 1));
        let count = last.saturating_sub(first).saturating_add(1).max(0);
        fits(job, &RedisReply::Number(count), job.settings.array_len_max as u64)?;
        match job.redis(&["LRANGE", key, &first.to_string(), &last.to_string()])? {
            RedisReply::List(texts) => {
                texts.into_iter().map(|told| Ok(text(job, told)?.into())).collect()
            }
            _ => Err(UNEXPECTED.into()),
        }
    })
}

fn all(job: SalJob<'_>, key: &str) -> CallResult<Map> {
    let len = job.redis(&["HLEN", job.free(key)?])?;
    fits(job, &len, job.settings.array_len_max as u64)?;
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

const UNEXPECTED: &str = "redis has answered something else";

fn fits(job: SalJob<'_>, size: &RedisReply, max: u64) -> CallResult<()> {
    job.check_stop()?;
    let size = number(size)?;
    if u64::try_from(size).is_ok_and(|size| size > max) {
        return Err(format!("it is larger than {max}, the limit of a script's values").into());
    }
    Ok(())
}

fn number(told: &RedisReply) -> CallResult<INT> {
    match told {
        RedisReply::Number(number) => Ok(*number),
        _ => Err(UNEXPECTED.into()),
    }
}

fn text(job: SalJob<'_>, told: RedisReply) -> CallResult<String> {
    match told {
        RedisReply::Text(bytes) if bytes.len() as u64 > job.settings.bytes_max => {
            Err("a text is longer than the limit of a script's strings".into())
        }
        RedisReply::Text(bytes) => String::from_utf8(bytes).map_err(|_| "not UTF-8 text".into()),
        _ => Err(UNEXPECTED.into()),
    }
}

fn text_or_unit(job: SalJob<'_>, told: RedisReply) -> CallResult<Dynamic> {
    match told {
        RedisReply::Nil => Ok(Dynamic::UNIT),
        told => Ok(text(job, told)?.into()),
    }
}
