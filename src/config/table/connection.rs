//! The keys of `[redis]`.

use super::row::{TEN_YEARS, key_table};

key_table! {
    /// Which Redis, and how to log in.
    REDIS = "redis";

    /// Where Redis listens: `redis://HOST:PORT/DB`, or `redis+unix:///PATH` for a socket (`unix:///PATH` is the
    /// same), or `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB` for the master with that name, or
    /// `redis+cluster://HOST:PORT,HOST:PORT/` for some nodes of a Redis Cluster. `rediss://`, `rediss+sentinel://`
    /// and `rediss+cluster://` use TLS. A user and a password in it work, but the password is better kept in
    /// `password_file`.
    /// ---
    /// It is never printed. There may be any number of sentinels, whose port is 26379 unless another is named.
    /// The port of a node of a cluster is 6379 unless another is named; Hero asks the nodes for the others, and for
    /// the one that has the keys.
    url: Text;

    /// The prefix of every key in Redis. Environments that share one Redis use different ones, such as `prod_hero`
    /// and `qa_hero`. For a Redis Cluster it must be in braces, `{hero}`, which keeps all keys in one slot, on one
    /// node. 1 to 64 of A-Z, a-z, 0-9, `_`, `.` and `-`.
    namespace: Text, restart;

    /// The user of Redis's access control list. Empty: Redis's default user.
    username: Text;

    /// The file that holds the password. Empty: the systemd credential `redis-password` if the unit has one, else
    /// no password.
    /// ---
    /// One newline at its end is ignored. See CREDENTIALS, below.
    password_file: File;

    /// With TLS: the certificate authorities for the certificate of Redis, in PEM. Empty: those that the system
    /// trusts. The certificate must name the host of the url.
    tls_ca_file: File;

    /// With TLS: Hero's client certificate and its key, in PEM, for a Redis that asks for one, as it does by
    /// default (`tls-auth-clients`).
    tls_cert_file: File;
    tls_key_file: File;

    /// The time for which Redis may refuse the login before a unit ends with exit code 77, so that monitoring sees
    /// it as failed. Until then it reads the password again with each attempt, and its jobs run on. At its start a
    /// refused login ends it at once.
    refused_for: Duration(0, TEN_YEARS);

    /// Refuses a Redis that forgets accepted jobs when it is killed (`appendonly no`), leaves its writes to the
    /// kernel (`appendfsync no`), or evicts keys: the daemon then ends with exit code 78. `hero check --redis` says
    /// what this Redis keeps, and what to do.
    /// ---
    /// Also refuses a Redis that does not say, because its user may not call INFO. Without it the daemon warns.
    require_durable: Flag, restart;

    /// Where a job must be before its submission is answered, and its end before its reply: `memory`, in the memory
    /// of Redis; `disk`, synchronised with its append-only file (Redis 7.2 or later, Valkey 8 or later; an older
    /// Redis needs `appendfsync always`); or `replicas:2`, in the memory of two replicas. A job with `--durable`
    /// asks for `disk` where this says `memory`.
    /// ---
    /// Hero calls WAITAOF for the disk and WAIT for 1 to 16 replicas. Redis has 5 s to confirm. After that the
    /// submission fails with the id of the job, which is stored and runs all the same; an end pushes no reply.
    /// Actors and submitters read it, each from its own configuration.
    ack: Text, restart;

    /// The number of shards that hold the jobs, the same on all machines. Shard 0, the home shard, is the namespace
    /// itself; shard 3 of `hero` is the namespace `{hero-3}`. Jobs are spread over them by their queues, and actors
    /// and supervisors serve all of them. It may be raised at any time, which moves nothing, and must not be
    /// lowered while jobs are left in the last ones. In a Redis Cluster the shards lie on different nodes.
    shards: Number(1, 256), restart;

    /// The urls of the servers of the shards 1, 2 and so on, in this order, if they are not on the server or
    /// cluster of `redis.url`. The user, the password and the files of TLS are the same for all. Empty: all shards
    /// are at `redis.url`.
    /// ---
    /// Passwords in them are never printed.
    shard_urls: Texts;

    /// The shards that the actors and supervisors of this machine serve, such as `[0, 1]`. Empty: all. Each shard
    /// needs actors and a supervisor somewhere.
    serve: Numbers(0, 255), restart;
}
