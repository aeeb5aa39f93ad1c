//! The keys of `[api]`.

use super::row::{HOUR, KIB, REDIS_STRING, SECOND, key_table};

key_table! {
    /// The API and the page, which each supervisor serves. docs/api.md has examples.
    API = "api";

    /// Where: `unix:///PATH` for a socket, or `ADDRESS:PORT` for TCP, such as `127.0.0.1:8470`. Port 0 is a free
    /// port. Empty: no API.
    listen: Texts, restart;

    /// The path below which everything is served, for a proxy, such as `/hero`.
    path: Text, restart;

    /// Over TCP a browser may call the API by an address, as `localhost`, or by these names.
    hosts: Texts;

    /// The proxies whose headers X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto count: addresses, or
    /// networks such as `10.0.0.0/8`.
    trusted_proxies: Texts;

    /// The certificates of the server with the chain, and the private key, in PEM. Without them TCP has no TLS:
    /// then listen on an address of this machine only. A reload reads them again.
    tls_cert_file: File;
    tls_key_file: File;

    /// Over a Unix socket, root and the members of `admin_group` may do everything; the members of `group` may
    /// read, submit, and stop and retry their own jobs. The socket belongs to `group`, with mode 0660.
    admin_group: Text;
    group: Text;

    /// The unique keys that all callers share, as patterns in which `*` stands for any text. Any other key of a
    /// caller with bounds, or without the scope `operate`, belongs to it and to the context of its job.
    shared_unique_keys: Texts;

    /// Serves `/metrics` without a login.
    metrics_open: Flag;

    /// The largest body of a request.
    body_size_max: Size(KIB, REDIS_STRING);

    /// The most calls of one batch.
    batch_max: Number(1, 10_000);

    /// The most connections at once.
    connections_max: Number(1, 100_000), restart;

    /// A client that does not send a request, or does not read its answer, within this time is disconnected.
    client_timeout: Duration(SECOND, HOUR);

    /// The file that gets the addresses in use, one per line, for programs that ask for port 0.
    address_file: File, restart;
}

key_table! {
    /// A caller that logs in by a signature of secp256k1.
    ///
    ///     api.keys.ci.public_key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
    ///     api.keys.ci.scopes = ["read", "submit"]
    ///     api.keys.ci.types = ["python"]
    ///     api.keys.ci.groups = ["default"]
    ///     api.keys.ci.callers = ["ci"]
    ///     api.keys.ci.contexts = ["builds"]
    API_KEYS = "api.keys.NAME", restart;

    /// Its public key of secp256k1, in hexadecimal digits.
    public_key: Text;

    /// Its scopes.
    scopes: SomeOf(&["read", "submit", "operate", "admin"]);

    /// These bound its jobs, as the options of `hero token new` do; empty for all.
    types: Texts;
    groups: Texts;
    callers: Texts;
    contexts: Texts;
}
