//! Posts a message to a URL. Redirects are not followed: they could lead to an address inside.

use std::path::PathBuf;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use ring::hmac;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::secret;
use crate::config::NotifyConfig;
use crate::proto::notification::NotifyMessage;
use crate::proto::text::{hexadecimal, shown, text_of};

/// The bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
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
pub(super) async fn post(notify: &NotifyConfig, message: &NotifyMessage) -> Result<(), String> {
    let secret = secret(notify, &message.to).await?;
    let secret = secret.as_ref().map_or("", |secret| secret.expose());
    let url = notify.webhook.as_deref().unwrap_or_default();
    if secret.is_empty() && needs_secret(notify) {
        return Err(format!("{SECRET} is used, but there is no secret: set secret_file"));
    }
    let uri: Uri =
        url.replace(SECRET, secret).parse().map_err(|_| "the url is invalid".to_owned())?;
    let body = body(notify, message)?;
    let request = request(notify, message, &uri, secret, body)?;
    let hidden =
        |reason: String| if secret.is_empty() { reason } else { reason.replace(secret, "***") };
    send(&uri, request, notify.tls_ca_file.clone()).await.map_err(hidden)
}

fn needs_secret(notify: &NotifyConfig) -> bool {
    notify.webhook.iter().chain(notify.headers.values()).any(|text| text.contains(SECRET))
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

fn request(
    notify: &NotifyConfig,
    message: &NotifyMessage,
    uri: &Uri,
    secret: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let host = host.rsplit('@').next().unwrap_or_default();
    let mut request = Request::post(path).header("host", host);
    let has = |name: &str| notify.headers.keys().any(|of| of.eq_ignore_ascii_case(name));
    if !has("content-type") {
        request = request.header("content-type", "application/json");
    }
    if !has("user-agent") {
        request = request.header("user-agent", concat!("hero/", env!("CARGO_PKG_VERSION")));
    }
    for (name, value) in &notify.headers {
        request = request.header(name, value.replace(SECRET, secret));
    }
    request = request.header("hero-message-id", &message.id);
    if !secret.is_empty() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let signature = hexadecimal(hmac::sign(&key, &body).as_ref());
        request = request.header("hero-signature", format!("sha256={signature}"));
    }
    request.body(Full::new(body)).map_err(|error| error.to_string())
}

async fn send(
    uri: &Uri,
    request: Request<Full<Bytes>>,
    authorities: Option<PathBuf>,
) -> Result<(), String> {
    let is_tls = uri.scheme_str() == Some("https");
    let host = uri.host().ok_or("the url has no host")?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let unreachable =
        |error: std::io::Error| format!("cannot connect to {host} port {port}: {error}");
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
    if !is_tls {
        return ask(stream, request).await;
    }
    let connector = connector(authorities).await?;
    let name = ServerName::try_from(host.clone()).map_err(|_| format!("{host} is no host name"))?;
    let stream = connector.connect(name, stream).await;
    ask(stream.map_err(|error| format!("TLS with {host} failed: {error}"))?, request).await
}

/// Sends the request, and reads the status and the start of the answer.
async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(), String> {
    let lost = |error: hyper::Error| format!("the connection failed: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    let read = async {
        let answer = answer.map_err(lost)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let text = body.map(|body| shown(&text_of(&body.to_bytes()))).unwrap_or_default();
        let hint = if status.is_redirection() { "; redirects are not followed" } else { "" };
        Err(format!("the answer is {status}{hint} {text}").trim_end().to_owned())
    };
    let ended = read.await;
    connection.abort();
    ended
}

/// Returns the TLS of a client: by the authorities of a file, else by the authorities of the system.
pub(super) async fn tls_config(authorities: Option<PathBuf>) -> Result<ClientConfig, String> {
    let read = tokio::task::spawn_blocking(move || {
        let mut roots = RootCertStore::empty();
        if let Some(file) = authorities {
            let wrong = |error: String| format!("cannot read {}: {error}", file.display());
            let certificates = CertificateDer::pem_file_iter(&file);
            let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err("no certificate authority is known: install ca-certificates".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    });
    read.await.map_err(|error| error.to_string())?
}

async fn connector(authorities: Option<PathBuf>) -> Result<TlsConnector, String> {
    let mut config = tls_config(authorities).await?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::notification::{NotifyEvent, NotifyKind};

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
