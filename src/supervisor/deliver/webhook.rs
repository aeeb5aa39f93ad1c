//! Posts a message to a URL. Redirects are not followed: they could lead to an address inside.

use hyper::body::Bytes;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use ring::hmac;

use super::{DeliveryFailure, secret};
use crate::config::NotifyConfig;
use crate::http::HttpPoster;
use crate::proto::notification::{NotifyEvent, NotifyKind, NotifyMessage, NotifyName};
use crate::proto::text::hexadecimal;

/// The largest body that a template makes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// The most steps of a template.
const FUEL: u64 = 200_000;
/// The part of a URL or header in whose place the secret is put.
const SECRET: &str = "{secret}";

/// Posts a message. It is delivered if the answer is 2xx.
///
/// # Errors
/// The reason, without the secret.
pub(super) async fn post(
    notify: &NotifyConfig,
    message: &NotifyMessage,
) -> Result<(), DeliveryFailure> {
    let secret = secret(notify, &message.to).await?;
    let secret = secret.as_ref().map_or("", |secret| secret.expose());
    let url = notify.webhook.as_deref().unwrap_or_default();
    let mut texts = notify.webhook.iter().chain(notify.headers.values());
    if secret.is_empty() && texts.any(|text| text.contains(SECRET)) {
        return Err(format!("{SECRET} is used, but there is no secret: set secret_file").into());
    }
    let poster = HttpPoster::new(&url.replace(SECRET, secret), notify.timeout)?;
    let body = body(notify, message)?;
    let headers = headers(notify, message, secret, &body);
    let done = poster.trusting(notify.tls_ca_file.clone()).post(&headers, body).await;
    let hidden =
        |reason: String| if secret.is_empty() { reason } else { reason.replace(secret, "***") };
    done.map(drop).map_err(|error| DeliveryFailure {
        is_permanent: error.is_permanent,
        reason: hidden(error.to_string()),
    })
}

/// Returns the body: the whole message, or what the template makes of it. What a template inserts is escaped as JSON.
fn body(notify: &NotifyConfig, message: &NotifyMessage) -> Result<Bytes, String> {
    let document = message.document();
    let Some(template) = &notify.template else { return Ok(document.to_string().into()) };
    let mut environment = Environment::empty();
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    // An event has no member `name` if its job has none: that is `null`, and no reason to deliver nothing.
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("length", minijinja::filters::length);
    environment.add_filter("join", minijinja::filters::join);
    let wrong = |error| format!("the template cannot be rendered: {error}");
    let template = environment.template_from_str(template).map_err(wrong)?;
    let names = template.undeclared_variables(false);
    if let Some(name) = names.iter().find(|name| document.get(name.as_str()).is_none()) {
        return Err(format!("the template names {name}, which no message has"));
    }
    let made = template.render(Value::from(Serde(&document))).map_err(wrong)?;
    if made.len() > BODY_BYTES_MAX {
        return Err(format!("the template makes more than {BODY_BYTES_MAX} bytes"));
    }
    Ok(made.into())
}

/// Returns why the template of a notification makes no body for an event of some kind; `None` if it makes one for each.
pub(super) fn fault(name: &NotifyName, notify: &NotifyConfig) -> Option<String> {
    let why = |kind: &NotifyKind| {
        let (at, id) = ("2026-01-01T00:00:00Z".to_owned(), "sample".to_owned());
        let event = NotifyEvent { at: at.clone(), id: id.clone(), ..NotifyEvent::default() };
        let mut message = NotifyMessage::new(id, name.clone(), at);
        message.add(*kind, &event);
        let why = body(notify, &message).err()?;
        Some(format!("notify.{name}.template, for the event {kind}: {why}"))
    };
    NotifyKind::ALL.iter().find_map(why)
}

fn headers(
    notify: &NotifyConfig,
    message: &NotifyMessage,
    secret: &str,
    body: &[u8],
) -> Vec<(String, String)> {
    let own = notify.headers.iter();
    let mut headers: Vec<_> =
        own.map(|(name, value)| (name.clone(), value.replace(SECRET, secret))).collect();
    headers.push(("hero-message-id".to_owned(), message.id.clone()));
    if !secret.is_empty() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let signature = hexadecimal(hmac::sign(&key, body).as_ref());
        headers.push(("hero-signature".to_owned(), format!("sha256={signature}")));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> NotifyMessage {
        let at = "2026-01-01T00:00:00Z".to_owned();
        let mut message =
            NotifyMessage::new("ops-1-0".to_owned(), "ops".parse().expect("legal"), at);
        let event = NotifyEvent { name: name.to_owned(), ..NotifyEvent::default() };
        message.add(NotifyKind::Failed, &event);
        message
    }

    fn of(template: &str) -> NotifyConfig {
        NotifyConfig { template: Some(template.to_owned()), ..NotifyConfig::default() }
    }

    #[test]
    fn template_inserts_values_as_json() {
        let hostile = "\"}, {\"admin\": true, \"x\": \"\n";
        let made = body(&of(r#"{"text": {{ events[0].name }}}"#), &message(hostile)).expect("made");
        let read: serde_json::Value = serde_json::from_slice(&made).expect("JSON");
        assert_eq!(read, serde_json::json!({ "text": hostile }));
    }

    #[test]
    fn template_that_never_ends_or_makes_too_much_is_an_error() {
        let loops = |deep: usize| {
            let open = "{% for a in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] %}".repeat(deep);
            format!("{open}xxxxxxxxxx{}", "{% endfor %}".repeat(deep))
        };
        assert!(body(&of(&loops(2)), &message("a")).is_ok());
        for template in [&*loops(9), "{{ nothing }}", "{% include 'x' %}"] {
            assert!(body(&of(template), &message("a")).is_err(), "{template}");
        }
    }
}
