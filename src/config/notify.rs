//! `[notify.NAME]`: who is told what, and how.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config_error::{ConfigError, Fault, KeyPath};
use super::connection::{Password, empty_is_none, password_of};
use super::key_row::{DAY, SECOND};
use super::sandbox::SandboxConfig;
use super::units::duration;
use crate::config::toml_table::toml_table;
use crate::proto::cron::CronName;
use crate::proto::notification::{NotifyEvent, NotifyKind, NotifyName};
use crate::proto::target::{Group, ScriptType, is_word};

const NOTIFICATIONS_MAX: usize = 100;
/// The most entries of a list, and the longest of them in bytes.
const LIST_MAX: usize = 100;
const TEXT_BYTES_MAX: usize = 4096;

toml_table! {
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
    pub struct NotifyConfig in "notify.NAME" {
        /// The URL that gets a POST request for each message. `{secret}` in it is replaced by the secret.
        webhook: Option<String> as "empty_is_none" = None => Text;
        /// Headers of that request. `{secret}` in a value is replaced by the secret.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String> = BTreeMap::new() => Map;
        /// The template of its body, in the language of Jinja; each value that it inserts is written as JSON. By default
        /// the body is the whole message as JSON.
        template: Option<String> as "empty_is_none" = None => Text;
        /// The secret: it signs the body, stands for `{secret}`, and is the password of `smtp`. The systemd credential
        /// `notify-NAME` of the unit does the same.
        secret_file: Option<PathBuf> = None => File;
        /// The certificate authority of the server, in PEM; by default the authorities of the system.
        tls_ca_file: Option<PathBuf> = None => File;
        /// The addresses that get a mail.
        mail: Vec<String> = Vec::new() => Texts;
        /// The sender of mails, such as `Hero <hero@example.org>`; without `@` one of this machine. By default `hero`.
        from: String = "hero".to_owned() => Text;
        /// The server for mails, `smtps://USER@HOST:PORT` or `smtp://HOST:PORT`. Without one the program `sendmail`
        /// takes them, by default `/usr/sbin/sendmail`.
        smtp: Option<String> as "empty_is_none" = None => Text;
        sendmail: PathBuf = PathBuf::from("/usr/sbin/sendmail") => File;
        /// A program with its arguments, which gets each message on its standard input as JSON. It is sandboxed as a
        /// script is; it may read and write these folders in addition, and use the network if that is allowed.
        command: Vec<String> = Vec::new() => Texts;
        read: Vec<PathBuf> = Vec::new() => Folders;
        write: Vec<PathBuf> = Vec::new() => Folders;
        network: bool = false => Flag;
        /// Writes each message to the log of the supervisor.
        journal: bool = false => Flag;
        /// The events that are told: `failed`, `dead` (a failed job used up its attempts), `recovered` (a job finished
        /// whose like had failed), `finished`, `late` (a job has not ended within its `expect_within`), `slow` (an attempt
        /// runs for longer than its `slow_after`), and problems of `hero doctor`: `held` (a limit or a pause holds jobs for
        /// longer than `check.wait_warning`), `no_actor` (jobs wait in a queue that no live actor serves) and `cron_late` (a
        /// periodic job has not succeeded for twice its interval), each with `recovered` once it is over. By default
        /// `["failed"]`.
        on: Vec<NotifyKind> = vec![NotifyKind::Failed]
            => SomeOf(&[
                "failed", "dead", "recovered", "finished", "late", "slow", "held", "no_actor", "cron_late",
            ]);
        /// Select the jobs, each list narrows the selection: script types, groups, callers, tags, and names of periodic
        /// jobs.
        types: Vec<ScriptType> = Vec::new() => Texts;
        groups: Vec<Group> = Vec::new() => Texts;
        callers: Vec<String> = Vec::new() => Texts;
        tags: Vec<String> = Vec::new() => Texts;
        crons: Vec<CronName> = Vec::new() => Texts;
        /// Selects only jobs that name this notification.
        named: bool = false => Flag;
        /// The shortest time between two messages: events between them are told by one. `0s` sends each at once. By default
        /// `5m`.
        every: Duration as "duration" = Duration::from_mins(5) => Duration(0, DAY);
        /// The longest time that one attempt to deliver may take. By default `10s`.
        timeout: Duration as "duration" = Duration::from_secs(10) => Duration(1, 60 * SECOND);
    }
}

impl NotifyConfig {
    /// Returns the kind by which it tells an event; `None` if it does not tell it. A job that names it passes all filters.
    pub fn tells(&self, name: &NotifyName, event: &NotifyEvent) -> Option<NotifyKind> {
        let is_named = event.names.iter().any(|of| of == name.as_str());
        if event.kind == Some(NotifyKind::Test) {
            return event.kind.filter(|_| is_named);
        }
        let fits = || {
            let is_among = |list: &[String], word: &String| list.is_empty() || list.contains(word);
            let group = if event.group.is_empty() { "default" } else { &event.group };
            // The end of a graph or batch is told to those that it names.
            !self.named
                && event.whole.is_none()
                && (self.types.is_empty()
                    || self.types.iter().any(|of| of.as_str() == event.script_type))
                && (self.groups.is_empty() || self.groups.iter().any(|of| of.as_str() == group))
                && is_among(&self.callers, &event.caller)
                && (self.tags.is_empty() || self.tags.iter().any(|tag| event.tags.contains(tag)))
                && (self.crons.is_empty() || self.crons.iter().any(|of| of.as_str() == event.cron))
        };
        // The end of a problem is for those that were told of it.
        let heard = event.ended.is_none_or(|problem| self.on.contains(&problem));
        let kind = || event.kinds().find(|kind| self.on.contains(kind));
        (heard && (is_named || fits())).then(kind).flatten()
    }

    /// Returns the ways by which it tells: `webhook`, `mail`, `command`, `journal`.
    pub fn ways(&self) -> Vec<&'static str> {
        let ways = [
            (self.webhook.is_some(), "webhook"),
            (!self.mail.is_empty(), "mail"),
            (!self.command.is_empty(), "command"),
            (self.journal, "journal"),
        ];
        ways.into_iter().filter(|(is_on, _)| *is_on).map(|(_, way)| way).collect()
    }

    /// Returns the name of the sender of mails, if it has one, and its address.
    pub fn sender(&self) -> (Option<&str>, &str) {
        match self.from.strip_suffix('>').and_then(|from| from.rsplit_once('<')) {
            Some((name, address)) => (Some(name.trim()).filter(|name| !name.is_empty()), address),
            None => (None, &self.from),
        }
    }

    pub fn sandbox(&self) -> SandboxConfig {
        let (read, write) = (self.read.clone(), self.write.clone());
        SandboxConfig { read, write, network: self.network, ..SandboxConfig::default() }
    }

    /// Reads the secret from its file, else from the systemd credential `notify-NAME`; `None` without either.
    pub fn secret(&self, name: &NotifyName) -> Result<Option<Password>, ConfigError> {
        let credential = format!("notify-{name}");
        password_of("the secret of a notification from", self.secret_file.as_deref(), &credential)
    }

    fn check(&self, path: &KeyPath) -> Result<(), Fault> {
        if self.ways().is_empty() {
            return Err(Fault::new(path.clone(), "needs webhook, mail, command or journal"));
        }
        if let Some(url) = &self.webhook {
            let is_url = url.starts_with("https://") || url.starts_with("http://");
            let is_text = url.bytes().all(|byte| byte.is_ascii_graphic());
            if !(is_url && is_text && url.len() <= TEXT_BYTES_MAX) {
                return path
                    .wrong("webhook", "must be a url https://HOST/PATH or http://HOST/PATH");
            }
        }
        if let Some(place) = self.headers.iter().position(|(name, value)| !is_header(name, value)) {
            let name = self.headers.keys().nth(place).map_or("", String::as_str);
            let message = "is no header: its name has letters, digits and hyphens, its value is one line; \
                           host, content-length and the signature are set by Hero";
            return path.then("headers").wrong(name, message);
        }
        if self.mail.iter().any(|address| !is_address(address)) {
            return path.wrong("mail", "must have addresses such as ops@example.org");
        }
        let (name, address) = self.sender();
        if !is_address(address) || name.is_some_and(|name| name.contains(char::is_control)) {
            return path.wrong("from", "must be an address such as Hero <hero@example.org>");
        }
        if let Some(server) = &self.smtp
            && !(server.starts_with("smtps://") || server.starts_with("smtp://"))
        {
            return path.wrong("smtp", "must be a url smtps://USER@HOST:PORT or smtp://HOST:PORT");
        }
        if self.smtp.as_ref().is_some_and(|server| has_password(server)) {
            return path.wrong("smtp", "has a password: put it into the file of secret_file");
        }
        let program = self.command.first().map(Path::new);
        if program.is_some_and(|program| !program.is_absolute()) {
            return path.wrong("command", "must begin with the absolute path of a program");
        }
        self.sandbox().check(path)?;
        if !self.sendmail.is_absolute() {
            return path.wrong("sendmail", "must be an absolute path");
        }
        if self.on.is_empty() || self.on.contains(&NotifyKind::Test) {
            let words: Vec<&str> = NotifyKind::ALL[..NotifyKind::ALL.len() - 1]
                .iter()
                .map(|kind| kind.as_str())
                .collect();
            return path.wrong("on", format!("must name some of {}", words.join(", ")));
        }
        let texts = self.mail.iter().chain(&self.command).chain(&self.callers).chain(&self.tags);
        let is_long = [self.mail.len(), self.command.len(), self.callers.len(), self.tags.len()]
            .into_iter()
            .any(|length| length > LIST_MAX);
        if is_long
            || texts.into_iter().any(|text| text.len() > TEXT_BYTES_MAX || text.contains('\0'))
        {
            return Err(Fault::new(path.clone(), "has a list or a text that is too long"));
        }
        Ok(())
    }
}

pub(super) fn check_notifications(
    notifications: &BTreeMap<NotifyName, NotifyConfig>,
) -> Result<(), Fault> {
    if notifications.len() > NOTIFICATIONS_MAX {
        let message = format!("must be at most {NOTIFICATIONS_MAX} tables");
        return Err(Fault::new(KeyPath::of(&["notify"]), message));
    }
    notifications
        .iter()
        .try_for_each(|(name, notify)| notify.check(&KeyPath::of(&["notify", name.as_str()])))
}

/// Returns whether a header may be set, and is one line.
pub(super) fn is_header(name: &str, value: &str) -> bool {
    const OWN: &str =
        "host content-length transfer-encoding connection hero-signature hero-message-id";
    is_word(name.as_bytes(), 64, b"-")
        && !OWN.split(' ').any(|own| name.eq_ignore_ascii_case(own))
        && value.len() <= TEXT_BYTES_MAX
        && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Returns whether a text is an address of mail: no blanks, no option of a program, one line.
fn is_address(address: &str) -> bool {
    is_word(address.as_bytes(), 254, b"!#%&*+-/=?^_{|}~.@")
        && !address.starts_with('-')
        && address.bytes().filter(|byte| *byte == b'@').count() <= 1
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        Config::from_toml("h".as_ref(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn notification_is_sent_for_what_matches_all_its_filters_or_names_it() {
        let text = "[notify.ops]\njournal = true\non = [\"dead\", \"failed\"]\ntypes = [\"bash\"]\n\
                    groups = [\"default\"]\ntags = [\"a\"]\ncallers = [\"ann\"]\ncrons = [\"nightly\"]\n\
                    [notify.mine]\njournal = true\nnamed = true\n";
        let config = read(text).expect("legal");
        assert_eq!(read(&config.to_toml().expect("text")).expect("reads back"), config);
        let event = NotifyEvent {
            kind: Some(NotifyKind::Failed),
            script_type: "bash".to_owned(),
            tags: vec!["b".to_owned(), "a".to_owned()],
            caller: "ann".to_owned(),
            cron: "nightly".to_owned(),
            ..NotifyEvent::default()
        };
        let tells = |name: &str, event: &NotifyEvent| {
            let name: NotifyName = name.parse().expect("legal");
            config.notify[&name].tells(&name, event)
        };
        assert_eq!(tells("ops", &event), Some(NotifyKind::Failed));
        assert_eq!(tells("mine", &event), None);
        let dead = NotifyEvent { special: Some(NotifyKind::Dead), ..event.clone() };
        assert_eq!(tells("ops", &dead), Some(NotifyKind::Dead));
        for other in [
            NotifyEvent { script_type: "osis".to_owned(), ..event.clone() },
            NotifyEvent { group: "web".to_owned(), ..event.clone() },
            NotifyEvent { tags: Vec::new(), ..event.clone() },
            NotifyEvent { caller: "bob".to_owned(), ..event.clone() },
            NotifyEvent { cron: String::new(), ..event.clone() },
        ] {
            assert_eq!(tells("ops", &other), None, "{other:?}");
            let named = NotifyEvent { names: vec!["ops".to_owned(), "mine".to_owned()], ..other };
            assert_eq!(tells("ops", &named), Some(NotifyKind::Failed));
            assert_eq!(tells("mine", &named), Some(NotifyKind::Failed));
        }
        let finished = NotifyEvent { kind: Some(NotifyKind::Finished), ..event.clone() };
        assert_eq!(tells("ops", &finished), None);
        let of = |ended| NotifyEvent { kind: Some(NotifyKind::Dead), ended, ..event.clone() };
        assert_eq!(tells("ops", &of(None)), Some(NotifyKind::Dead));
        assert_eq!(tells("ops", &of(Some(NotifyKind::Held))), None, "it has not heard of it");
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let journal = "[notify.ops]\njournal = true\n";
        for (text, said) in [
            (
                "[notify.ops]".to_owned(),
                "h:1:1: notify.ops needs webhook, mail, command or journal",
            ),
            ("[notify.Ops]\njournal = true".to_owned(), "h:1:9: "),
            (
                format!("{journal}webhook = \"file:///x\""),
                "h:3:11: notify.ops.webhook must be a url",
            ),
            (format!("{journal}webhook = \"https://h/a b\""), "h:3:11: notify.ops.webhook must be"),
            (
                format!("{journal}[notify.ops.headers]\nHost = \"x\""),
                "h:4:8: notify.ops.headers.Host is no",
            ),
            (
                format!("{journal}[notify.ops.headers]\nx = \"a\\r\\nb: c\""),
                "h:4:5: notify.ops.headers.x is no",
            ),
            (
                format!("{journal}mail = [\"-oQ/tmp\"]"),
                "h:3:8: notify.ops.mail must have addresses",
            ),
            (
                format!("{journal}mail = [\"a@b\\nBcc: c@d\"]"),
                "h:3:8: notify.ops.mail must have addresses",
            ),
            (
                format!("{journal}from = \"Hero <a@b\\nBcc: c@d>\""),
                "h:3:8: notify.ops.from must be an address such as Hero <hero@example.org>",
            ),
            (format!("{journal}smtp = \"smtp://u:p@h\""), "h:3:8: notify.ops.smtp has a password"),
            (format!("{journal}command = [\"sh\"]"), "h:3:11: notify.ops.command must begin with"),
            (format!("{journal}on = [\"test\"]"), "h:3:6: notify.ops.on must name some of failed"),
            (format!("{journal}on = [\"broken\"]"), "h:3:7: "),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
