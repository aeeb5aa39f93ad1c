//! The keys of `[api.keys.NAME]` and `[keys.NAME]`.

use crate::config::key_row::key_table;

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

key_table! {
    /// A key that signs jobs, for `require_signature` of a script type. `hero key new NAME` makes one and prints these
    /// lines; docs/secrets.md has more.
    ///
    ///     [keys.ops]
    ///     public_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    KEYS = "keys.NAME";

    /// Its public half: the 32 bytes of an Ed25519 key in Base64.
    public_key: Text;
}
