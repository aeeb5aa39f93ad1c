//! The keys of `[keys.NAME]` and `[notify.NAME]`.

use super::row::{DAY, SECOND, key_table};

key_table! {
    /// A key that signs jobs, for `require_signature` of a script type. `hero key new NAME` makes one and prints these
    /// lines; docs/jobs.md has more.
    ///
    ///     [keys.ops]
    ///     public_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    KEYS = "keys.NAME";

    /// Its public half: the 32 bytes of an Ed25519 key in Base64.
    public_key: Text;
}

key_table! {
    /// Notifications: who is told when jobs fail, and how. Supervisors send them; all should have the same. One of
    /// `webhook`, `mail`, `command` and `journal` is required. `hero notify test NAME` tries one.
    ///
    /// A webhook, told at once, and then at most once in five minutes with all that happened:
    ///
    ///     [notify.ops]
    ///     webhook = "https://example.org/hooks/hero"
    ///     secret_file = "/etc/hero/secrets/hook"
    ///     on = ["failed", "recovered"]
    ///
    /// A mail for the firings of one periodic job:
    ///
    ///     [notify.backup]
    ///     mail = ["ops@example.org"]
    ///     from = "hero@example.org"
    ///     smtp = "smtps://hero@mail.example.org"
    ///     crons = ["backup"]
    ///
    /// A program, for the jobs alone that name it with `--notify pager`:
    ///
    ///     [notify.pager]
    ///     command = ["/usr/local/bin/page"]
    ///     on = ["dead"]
    ///     named = true
    /// ---
    /// Names are a letter of a-z or a digit, then at most 31 of a-z, 0-9, `_` and `-`. See docs/notifications.md.
    NOTIFY = "notify.NAME";

    /// The URL that gets a POST request for each message. `{secret}` in it is replaced by the secret.
    webhook: Text;

    /// Headers of that request. `{secret}` in a value is replaced by the secret.
    headers: Map;

    /// The template of its body, in the language of Jinja; each value that it inserts is written as JSON. By default
    /// the body is the whole message as JSON.
    template: Text;

    /// The secret: it signs the body, stands for `{secret}`, and is the password of `smtp`. The systemd credential
    /// `notify-NAME` of the unit does the same.
    secret_file: File;

    /// The certificate authority of the server, in PEM; by default the authorities of the system.
    tls_ca_file: File;

    /// The addresses that get a mail.
    mail: Texts;

    /// The sender of mails; without `@` one of this machine. By default `hero`.
    from: Text;

    /// The server for mails, `smtps://USER@HOST:PORT` or `smtp://HOST:PORT`. Without one the program `sendmail`
    /// takes them, by default `/usr/sbin/sendmail`.
    smtp: Text;
    sendmail: File;

    /// A program with its arguments, which gets each message on its standard input as JSON. It is sandboxed as a
    /// script is; it may read and write these folders in addition, and use the network if that is allowed.
    command: Texts;
    read: Folders;
    write: Folders;
    network: Flag;

    /// Writes each message to the log of the supervisor.
    journal: Flag;

    /// The events that are told: `failed`, `dead` (a failed job used up its attempts), `recovered` (a job finished
    /// whose like had failed), `finished`, `late` (a job has not ended within its `expect_within`), `slow` (an attempt
    /// runs for longer than its `slow_after`), and problems of `hero doctor`: `held` (a limit or a pause holds jobs for
    /// longer than `check.wait_warning`), `no_actor` (jobs wait in a queue that no live actor serves) and `cron_late` (a
    /// periodic job has not succeeded for twice its interval), each with `recovered` once it is over. By default
    /// `["failed"]`.
    on: SomeOf(&[
        "failed", "dead", "recovered", "finished", "late", "slow", "held", "no_actor", "cron_late",
    ]);

    /// Select the jobs, each list narrows the selection: script types, groups, callers, tags, and names of periodic
    /// jobs.
    types: Texts;
    groups: Texts;
    callers: Texts;
    tags: Texts;
    crons: Texts;

    /// Selects only jobs that name this notification.
    named: Flag;

    /// The shortest time between two messages: events between them are told by one. `0s` sends each at once. By default
    /// `5m`.
    every: Duration(0, DAY);

    /// The longest time that one attempt to deliver may take. By default `10s`.
    timeout: Duration(1, 60 * SECOND);
}
