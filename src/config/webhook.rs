//! `[hook.NAME]`: webhooks of other services, which submit published scripts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::config_error::{ConfigError, Fault, KeyPath};
use super::connection::{Password, empty_is_none, password_of};
use super::key_row::{DAY, HOUR};
use super::limits::Rate;
use super::units::duration;
use crate::config::toml_table::toml_table;
use crate::proto::script_use::ScriptUse;
use crate::proto::target::{IllegalName, is_small_word, is_word, name};
use crate::proto::word_table::words;

const HOOKS_MAX: usize = 100;
/// The most conditions, and the most parameters, of a webhook.
const SELECTORS_MAX: usize = 64;

name!(
    /// The name of a webhook, in the configuration and in its address.
    HookName,
    "name of a webhook",
    "a letter a-z or digit, then at most 31 of a-z, 0-9, _ and -",
    |name| is_small_word(name, 32, b"_-") && name[0].is_ascii_alphanumeric()
);

words! {
    /// The proof of a sender that it knows the secret.
    #[derive(Deserialize)]
    HookProof;
    Github = "github",
    Gitlab = "gitlab",
    Stripe = "stripe",
    Slack = "slack",
    HmacSha256 = "hmac-sha256",
    Path = "path",
}

words! {
    #[derive(Deserialize)]
    SignatureEncoding;
    Hex = "hex",
    Base64 = "base64",
}

toml_table! {
    /// Webhooks of other services: a delivery to `POST /hooks/NAME`, at the addresses of the API, submits a published
    /// script. Nobody needs a token for it, but who sends must know the secret. `hero hook list` shows the latest
    /// deliveries, `hero hook test NAME < body.json` tries one.
    ///
    ///     [hook.github]
    ///     verify = "github"
    ///     secret_file = "/etc/hero/secrets/github"
    ///     uses = "deploy"
    ///     when = { X-GitHub-Event = "push", "/ref" = "refs/heads/main" }
    ///     params = { commit = "/after", repository = "/repository/full_name" }
    /// ---
    /// Names are a letter of a-z or a digit, then at most 31 of a-z, 0-9, `_` and `-`. See docs/webhooks.md.
    pub struct WebhookConfig in "hook.NAME" {
        /// The proof of the sender: `github`, `gitlab`, `stripe` and `slack` are the rules of these services;
        /// `hmac-sha256` is a signature of the body in `header`; `path` is the secret as the last part of the address,
        /// `POST /hooks/NAME/SECRET`, for senders that cannot sign.
        verify: Option<HookProof> = None
            => OneOf(&["github", "gitlab", "stripe", "slack", "hmac-sha256", "path"]);
        /// The file of the secret. The systemd credential `hook-NAME` of the supervisor's unit does the same.
        secret_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// Of `hmac-sha256`: the header with the signature, and its encoding; a `sha256=` before it does not matter.
        header: String = "X-Signature".to_owned() => Text;
        encoding: SignatureEncoding = SignatureEncoding::Hex => OneOf(&["hex", "base64"]);
        /// Of `hmac-sha256`: the header with the time of the delivery, in seconds since 1970, if the signature is one of this
        /// time, a dot and the body.
        timestamp_header: Option<String> as "empty_is_none" = None => Text;
        /// The greatest difference between the time that a delivery was signed with and now, by `stripe`, `slack` and
        /// `timestamp_header`.
        tolerance: Duration as "duration" = Duration::from_mins(5) => Duration(1000, DAY);
        /// The published script, `NAME` or `NAME@VERSION`.
        uses: Option<ScriptUse> = None => Text;
        /// The parameters of the script, each with the place of its value: a JSON pointer into the body, such as `/ref`, or
        /// the name of a header; `""` is the whole body. A value that a delivery does not have is left out.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, String> = BTreeMap::new() => Map;
        /// The conditions: a delivery is skipped unless the value of each place is this text, in which `*` stands for any.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        when: BTreeMap<String, String> = BTreeMap::new() => Map;
        /// The place of the delivery's id: a delivery that comes again within a day runs once. By default
        /// `X-GitHub-Delivery`, `Idempotency-Key` of GitLab, `/id` of Stripe and `/event_id` of Slack.
        delivery: Option<String> as "empty_is_none" = None => Text;
        /// Answers with the output of the job, if it ends within this time. `0s`: answers with its id at once.
        wait: Duration as "duration" = Duration::ZERO => Duration(0, HOUR);
        /// The most deliveries that a supervisor accepts within a time; others are refused with status 429.
        rate: Rate = Rate { number: 120, period: Duration::from_mins(1) } => Text;
    }
}

impl WebhookConfig {
    /// Reads the secret from its file, else from the systemd credential `hook-NAME`; `None` without either.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn secret(&self, name: &HookName) -> Result<Option<Password>, ConfigError> {
        let credential = format!("hook-{name}");
        password_of("the secret of a webhook from", self.secret_file.as_deref(), &credential)
    }

    /// Returns the place of the id of a delivery.
    pub fn id_place(&self) -> Option<&str> {
        self.delivery.as_deref().or(match self.verify? {
            HookProof::Github => Some("X-GitHub-Delivery"),
            HookProof::Gitlab => Some("Idempotency-Key"),
            HookProof::Stripe => Some("/id"),
            HookProof::Slack => Some("/event_id"),
            HookProof::HmacSha256 | HookProof::Path => None,
        })
    }

    fn check(&self, path: &KeyPath) -> Result<(), Fault> {
        let missing = [(self.verify.is_none(), "verify"), (self.uses.is_none(), "uses")];
        if let Some((_, key)) = missing.into_iter().find(|(is_missing, _)| *is_missing) {
            return Err(Fault::new(path.clone(), format!("needs {key}")));
        }
        let headers = [Some(&self.header), self.timestamp_header.as_ref()];
        if headers.into_iter().flatten().any(|name| !is_header_name(name)) {
            return Err(Fault::new(path.clone(), "has a header that is no name of a header"));
        }
        if self.rate.number == 0 || self.rate.period > Duration::from_hours(24) {
            let message = "must be at least one delivery, within at most 1d, such as \"120/m\"";
            return path.wrong("rate", message);
        }
        for (key, places) in [
            ("when", self.when.keys().collect::<Vec<_>>()),
            ("params", self.params.values().collect()),
            ("delivery", self.delivery.iter().collect()),
        ] {
            if places.len() > SELECTORS_MAX {
                return path.wrong(key, format!("has more than {SELECTORS_MAX}"));
            }
            if let Some(wrong) = places.into_iter().find(|place| !is_place(place)) {
                let shown = wrong.escape_debug();
                let message = format!(
                    "has `{shown}`: expected a JSON pointer such as /ref, or the name of a header"
                );
                return path.wrong(key, message);
            }
        }
        Ok(())
    }
}

fn is_header_name(text: &str) -> bool {
    is_word(text.as_bytes(), 64, b"-_")
}

/// Returns whether a text names a value of a delivery.
fn is_place(text: &str) -> bool {
    text.is_empty() || text.starts_with('/') || is_header_name(text)
}

pub(super) fn check_webhooks(hooks: &BTreeMap<HookName, WebhookConfig>) -> Result<(), Fault> {
    if hooks.len() > HOOKS_MAX {
        let message = format!("must be at most {HOOKS_MAX} tables");
        return Err(Fault::new(KeyPath::of(&["hook"]), message));
    }
    hooks.iter().try_for_each(|(name, hook)| hook.check(&KeyPath::of(&["hook", name.as_str()])))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        Config::from_toml("h".as_ref(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_of_a_webhook_are_reported_with_their_place() {
        let good = "[hook.github]\nverify = \"github\"\nuses = \"deploy\"\n";
        let config = read(good).expect("legal");
        assert_eq!(read(&config.to_toml().expect("text")).expect("reads back"), config);
        for (text, expected) in [
            ("[hook.github]\nuses = \"deploy\"".to_owned(), "h:1:1: hook.github needs verify"),
            ("[hook.a]\nverify = \"path\"".to_owned(), "h:1:1: hook.a needs uses"),
            ("[hook.A]\nverify = \"path\"\nuses = \"a\"".to_owned(), "h:1:7: "),
            ("[hook.a]\nverify = \"md5\"".to_owned(), "h:2:10: "),
            (format!("{good}rate = \"0/m\""), "h:4:8: hook.github.rate must be at least one"),
            (format!("{good}delivery = \"a b\""), "h:4:12: hook.github.delivery has `a b`"),
            (format!("{good}when = {{ \"re f\" = \"x\" }}"), "h:4:8: hook.github.when has `re f`"),
            (format!("{good}secret_file = \"a\""), "h:4:15: hook.github.secret_file must be"),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
