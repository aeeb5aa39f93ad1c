//! A delivery of a webhook: the proof of its sender, and the job that its hook makes of it.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use ring::hmac;
use serde_json::{Map, Value, json};

use crate::config::{HookProof, SignatureEncoding, WebhookConfig};
use crate::proto::pattern::matches;
use crate::proto::text::{hexadecimal, shown};

/// The time within which a repeated delivery is the same one.
const REPEATED_WITHIN: Duration = Duration::from_hours(24);

pub(super) struct WebhookDelivery {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The last part of its address, if that has one behind the name of the hook.
    pub(super) path_secret: Option<String>,
}

impl WebhookDelivery {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether its sender knows the secret, and signed it at most the tolerance of its hook from `now_s`, the seconds
    /// since 1970.
    pub(super) fn is_proven(&self, hook: &WebhookConfig, secret: &str, now_s: i64) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        // Compares the MACs of both texts, which `verify` does in constant time.
        let is_same = |text: &str, expected: &str| {
            let expected = hmac::sign(&key, expected.as_bytes());
            hmac::verify(&key, text.as_bytes(), expected.as_ref()).is_ok()
        };
        let signs = |signature: &str, encoding: SignatureEncoding, before: &str| {
            let tag = hmac::sign(&key, &[before.as_bytes(), &self.body].concat());
            match encoding {
                SignatureEncoding::Hex => {
                    is_same(&signature.to_ascii_lowercase(), &hexadecimal(tag.as_ref()))
                }
                SignatureEncoding::Base64 => is_same(signature, &STANDARD.encode(tag)),
            }
        };
        let is_fresh = |time: &str| {
            let distance = time.parse::<i64>().ok().map(|time| now_s.saturating_sub(time));
            distance.is_some_and(|of| of.unsigned_abs() <= hook.tolerance.as_secs())
        };
        let hex = SignatureEncoding::Hex;
        let proven = match hook.verify {
            None => None,
            Some(HookProof::Path) => self.path_secret.as_deref().map(|text| is_same(text, secret)),
            Some(HookProof::Gitlab) => {
                self.header("X-Gitlab-Token").map(|text| is_same(text, secret))
            }
            Some(HookProof::Github) => self
                .header("X-Hub-Signature-256")
                .and_then(|text| text.strip_prefix("sha256="))
                .map(|signature| signs(signature, hex, "")),
            Some(HookProof::Slack) => self
                .header("X-Slack-Signature")
                .and_then(|text| text.strip_prefix("v0="))
                .zip(self.header("X-Slack-Request-Timestamp"))
                .map(|(signature, time)| {
                    is_fresh(time) && signs(signature, hex, &format!("v0:{time}:"))
                }),
            Some(HookProof::Stripe) => self.header("Stripe-Signature").map(|text| {
                let parts = || text.split(',').filter_map(|part| part.trim().split_once('='));
                let time = parts().find(|(name, _)| *name == "t").map_or("", |(_, time)| time);
                let mut signature = parts().filter(|(name, _)| *name == "v1");
                // A secret that is replaced signs beside the new one for a while.
                is_fresh(time)
                    && signature.any(|(_, signature)| signs(signature, hex, &format!("{time}.")))
            }),
            Some(HookProof::HmacSha256) => self.header(&hook.header).map(|text| {
                let signature = text.strip_prefix("sha256=").unwrap_or(text);
                match &hook.timestamp_header {
                    None => signs(signature, hook.encoding, ""),
                    Some(name) => self.header(name).is_some_and(|time| {
                        is_fresh(time) && signs(signature, hook.encoding, &format!("{time}."))
                    }),
                }
            }),
        };
        proven == Some(true)
    }

    /// Returns the job that its hook submits.
    ///
    /// # Errors
    /// The condition that it does not meet.
    pub(super) fn job(&self, hook: &WebhookConfig) -> Result<Map<String, Value>, String> {
        let document = self.document();
        let value = |place: &str| {
            if place.is_empty() || place.starts_with('/') {
                return document.pointer(place).cloned().filter(|value| !value.is_null());
            }
            self.header(place).map(Value::from)
        };
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        for (place, expected) in &hook.when {
            let found = value(place).map(text);
            if !found.as_deref().is_some_and(|found| matches(expected, found)) {
                let found = found.map_or("absent".to_owned(), |of| format!("`{}`", shown(&of)));
                return Err(format!("{place} is {found}, not `{expected}`"));
            }
        }
        let params = hook.params.iter().filter_map(|(name, place)| Some((name, value(place)?)));
        let params: Map<String, Value> =
            params.map(|(name, value)| (name.clone(), value)).collect();
        let mut job = Map::new();
        job.insert("uses".to_owned(), json!(hook.uses));
        if !params.is_empty() {
            job.insert("params".to_owned(), Value::Object(params));
        }
        if let Some(id) = hook.id_place().and_then(value) {
            job.insert("unique_key".to_owned(), text(id).into());
            job.insert("unique_for".to_owned(), REPEATED_WITHIN.as_secs().into());
            job.insert("on_duplicate".to_owned(), "return".into());
        }
        Ok(job)
    }

    /// Returns its body: JSON, the fields of a form, or the JSON in the field `payload` of a form.
    fn document(&self) -> Value {
        const FORM: &str = "application/x-www-form-urlencoded";
        let kind = self.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        match serde_json::from_slice(&self.body) {
            Err(_) if kind.starts_with(FORM) => self.form(),
            document => document.unwrap_or_default(),
        }
    }

    fn form(&self) -> Value {
        let body = String::from_utf8_lossy(&self.body).replace('+', " ");
        let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let fields = body.split('&').filter_map(|pair| pair.split_once('='));
        let fields: Map<String, Value> =
            fields.map(|(name, value)| (decoded(name), decoded(value).into())).collect();
        let payload = fields.get("payload").and_then(Value::as_str);
        let payload = payload.and_then(|text| serde_json::from_str(text).ok());
        payload.unwrap_or(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(text: &str) -> WebhookConfig {
        let text = format!("[hook.a]\nverify = \"slack\"\nuses = \"deploy\"\n{text}");
        let config = crate::config::Config::from_toml("h".as_ref(), &text).expect("legal");
        config.hooks.into_values().next().expect("a hook")
    }

    fn delivery(headers: &[(&'static str, &str)], body: &str) -> WebhookDelivery {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        let body = Bytes::from(body.to_owned());
        WebhookDelivery { headers: pairs.collect(), body, path_secret: None }
    }

    #[test]
    fn example_of_slack_is_proven_within_the_tolerance_alone() {
        // https://api.slack.com/authentication/verifying-requests-from-slack
        let secret = "8f742231b10e8888abcd99yyyzzz85a5";
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
                    channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&\
                    user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                    response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F\
                    397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
                    trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let headers = [
            ("x-slack-signature", signature),
            ("x-slack-request-timestamp", "1531420618"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let (hook, signed) =
            (hook("when = { \"/command\" = \"/webhook*\" }"), delivery(&headers, body));
        assert!(signed.is_proven(&hook, secret, 1_531_420_618 + 299));
        assert!(!signed.is_proven(&hook, secret, 1_531_420_618 + 301));
        assert!(!signed.is_proven(&hook, "other", 1_531_420_618));
        assert!(signed.job(&hook).is_ok());
    }

    #[test]
    fn delivery_is_skipped_with_the_condition_that_it_does_not_meet() {
        let hook = hook(
            "when = { X-Event = \"push\", \"/draft\" = \"false\" }\n\
             params = { all = \"\", ref = \"/a/0\", none = \"/x\" }\ndelivery = \"/n\"",
        );
        let body = r#"{"a": ["m"], "draft": false, "n": 7}"#;
        let job = delivery(&[("x-event", "push")], body).job(&hook).expect("it fits");
        let all: Value = serde_json::from_str(body).expect("JSON");
        let expected = json!({
            "uses": "deploy", "params": { "all": all, "ref": "m" },
            "unique_key": "7", "unique_for": 86_400, "on_duplicate": "return",
        });
        assert_eq!(Value::Object(job), expected);
        let why = |headers: &[(&'static str, &str)]| {
            delivery(headers, "{}").job(&hook).expect_err("skipped")
        };
        assert_eq!(why(&[]), "/draft is absent, not `false`");
        let other = delivery(&[("x-event", "ping")], body).job(&hook).expect_err("skipped");
        assert_eq!(other, "X-Event is `ping`, not `push`");
    }
}
