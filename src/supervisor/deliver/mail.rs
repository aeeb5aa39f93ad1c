//! Sends a message as a mail, by a server or by the machine's `sendmail`.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::time::{Duration, Instant};

use hyper::Uri;
use lettre::address::Envelope;
use lettre::message::{Mailbox, header};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

use super::{DeliveryFailure, secret};
use crate::client::host_name;
use crate::config::NotifyConfig;
use crate::engine::process::{Service, ServiceSpec};
use crate::error::reason;
use crate::proto::notification::NotifyMessage;

/// The time to end after the deadline, before `sendmail` is killed.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// The exit codes of `sendmail` (sysexits.h) for a mail or an address that it will never take: `EX_DATAERR`, `EX_NOUSER`
/// and `EX_NOHOST`.
const REFUSED_FOR_GOOD: [i32; 3] = [65, 67, 68];
/// The answers of a server that refuse the login, not the mail.
const LOGIN_REFUSED: [u16; 4] = [530, 534, 535, 538];

/// Sends a mail to one of the addresses; its head names all.
pub(super) async fn send(
    notify: &NotifyConfig,
    message: &NotifyMessage,
    address: &str,
) -> Result<(), DeliveryFailure> {
    let mail = mail(notify, message)?;
    match &notify.smtp {
        Some(server) => by_server(notify, message, server, &mail, address).await,
        None => by_program(notify, &mail, address).await,
    }
}

/// Returns the host of addresses without one.
fn own_host() -> String {
    let host = host_name();
    if host.is_empty() { "localhost".to_owned() } else { host }
}

/// Reads an address; without `@` it is of this machine.
fn parsed(address: &str, host: &str) -> Result<Address, String> {
    let whole =
        if address.contains('@') { address.to_owned() } else { format!("{address}@{host}") };
    whole.parse().map_err(|_| format!("{whole} is no address of mail"))
}

/// The header that keeps programs from answering the mail, of RFC 3834.
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl header::Header for AutoSubmitted {
    fn name() -> header::HeaderName {
        header::HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> header::HeaderValue {
        header::HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Returns the subject: one line without control characters. The name of a job is no encoded word of RFC 2047, which programs
/// for mail would decode into line breaks and characters that are not shown.
fn subject(message: &NotifyMessage) -> String {
    format!("hero: {}", message.title()).replace("=?", "= ?")
}

/// Makes the mail. The crate encodes all headers.
fn mail(notify: &NotifyConfig, message: &NotifyMessage) -> Result<Message, String> {
    let host = own_host();
    let mailbox = |name: Option<&str>, address: &str| {
        Ok::<_, String>(Mailbox::new(name.map(str::to_owned), parsed(address, &host)?))
    };
    let (name, address) = notify.sender();
    let mut mail = Message::builder()
        .from(mailbox(name, address)?)
        .subject(subject(message))
        .message_id(Some(format!("<{}@{host}>", message.id)))
        .header(header::MIME_VERSION_1_0)
        .header(AutoSubmitted)
        .header(header::ContentType::TEXT_PLAIN)
        .date_now();
    for address in &notify.mail {
        mail = mail.to(mailbox(None, address)?);
    }
    mail.body(message.text()).map_err(|error| format!("the mail cannot be made: {error}"))
}

async fn by_server(
    notify: &NotifyConfig,
    message: &NotifyMessage,
    server: &str,
    mail: &Message,
    address: &str,
) -> Result<(), DeliveryFailure> {
    let to = vec![parsed(address, &own_host())?];
    let envelope = Envelope::new(mail.envelope().from().cloned(), to);
    let envelope = envelope.map_err(|error| format!("the mail cannot be made: {error}"))?;
    let url: Uri = server.parse().map_err(|_| "notify.smtp is no url".to_owned())?;
    let host = url.host().ok_or_else(|| "notify.smtp has no host".to_owned())?;
    let host = host.trim_matches(['[', ']']).to_owned();
    let is_tls = url.scheme_str() == Some("smtps");
    let user = url.authority().and_then(|of| of.as_str().rsplit_once('@')).map(|(user, _)| user);
    let password = secret(notify, &message.to).await?;
    let authorities = match notify.tls_ca_file.clone() {
        Some(file) => {
            let shown = file.display().to_string();
            let read = tokio::task::spawn_blocking(move || std::fs::read(file)).await;
            let read = read.map_err(|error| error.to_string())?;
            let read = read.map_err(|error| format!("cannot read {shown}: {}", reason(&error)))?;
            let parsed = Certificate::from_pem(&read);
            Some(parsed.map_err(|error| format!("cannot read {shown}: {error}"))?)
        }
        None => None,
    };
    let wrong = |error: lettre::transport::smtp::Error| format!("TLS with {host}: {error}");
    let mut tls = TlsParameters::builder(host.clone());
    if let Some(certificate) = authorities {
        tls = tls.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    let tls = tls.build_rustls().map_err(wrong)?;
    let (tls, port) = match (is_tls, user) {
        (true, _) => (Tls::Wrapper(tls), 465),
        // A password is never sent in the clear.
        (false, Some(_)) => (Tls::Required(tls), 587),
        (false, None) => (Tls::Opportunistic(tls), 25),
    };
    let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&host)
        .port(url.port_u16().unwrap_or(port))
        .tls(tls)
        .timeout(Some(notify.timeout));
    if let (Some(user), Some(password)) = (user, &password) {
        let credentials = Credentials::new(user.replace("%40", "@"), password.expose().to_owned());
        transport = transport.credentials(credentials);
    }
    let sent = transport.build().send_raw(&envelope, &mail.formatted()).await;
    sent.map(drop).map_err(|error| DeliveryFailure {
        is_permanent: error.is_permanent()
            && error.status().is_none_or(|code| !LOGIN_REFUSED.contains(&code.into())),
        reason: format!("the server {host} did not take the mail: {error}"),
    })
}

async fn by_program(
    notify: &NotifyConfig,
    mail: &Message,
    address: &str,
) -> Result<(), DeliveryFailure> {
    let (notify, mail, address) = (notify.clone(), mail.formatted(), address.to_owned());
    let ran = tokio::task::spawn_blocking(move || {
        let program = notify.sendmail.display().to_string();
        let failed = |error: std::io::Error| {
            DeliveryFailure::from(format!("cannot run {program}: {}", reason(&error)))
        };
        let input = || -> std::io::Result<File> {
            let mut file = tempfile::tempfile()?;
            // Such a program reads lines as this system ends them.
            file.write_all(&without_returns(&mail))?;
            file.rewind()?;
            Ok(file)
        };
        let args = ["-i", "--", &address].into_iter().map(Into::into);
        let spec = ServiceSpec {
            program: notify.sendmail.clone().into(),
            args: args.collect(),
            input: Some(input().map_err(failed)?),
            own_group: true,
            ..ServiceSpec::default()
        };
        let mut service = Service::start(spec).map_err(failed)?;
        let status = service.wait_for(Instant::now() + notify.timeout, KILL_GRACE);
        match status.map_err(failed)? {
            status if status.success() => Ok(()),
            status => Err(DeliveryFailure {
                is_permanent: status.code().is_some_and(|code| REFUSED_FOR_GOOD.contains(&code)),
                reason: format!("{program} ended with {status}"),
            }),
        }
    });
    ran.await.map_err(|error| error.to_string())?
}

fn without_returns(mail: &[u8]) -> Vec<u8> {
    mail.iter().copied().filter(|byte| *byte != b'\r').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::notification::{NotifyEvent, NotifyKind};

    #[test]
    fn encoded_word_in_a_name_is_shown_as_it_is() {
        let at = "2026-01-01T00:00:00Z".to_owned();
        let mut message =
            NotifyMessage::new("ops-1-0".to_owned(), "ops".parse().expect("legal"), at);
        let name = "=?utf-8?B?4oCuZmlubw==?=".to_owned();
        message.add(NotifyKind::Failed, &NotifyEvent { name, ..NotifyEvent::default() });
        let told = subject(&message);
        assert!(told.contains("= ?utf-8?B?") && !told.contains("=?"), "{told}");
    }

    #[test]
    fn hostile_name_adds_no_header_and_no_recipient() {
        let at = "2026-01-01T00:00:00Z".to_owned();
        let mut message =
            NotifyMessage::new("ops-1-0".to_owned(), "ops".parse().expect("legal"), at);
        let name = "x\r\nBcc: all@example.org\r\n\r\nbody\n.\n".to_owned();
        let event = NotifyEvent { error: name.clone(), name, ..NotifyEvent::default() };
        message.add(NotifyKind::Failed, &event);
        let to = vec!["ops@example.org".to_owned()];
        let notify = NotifyConfig { mail: to, ..NotifyConfig::default() };
        let mail = mail(&notify, &message).expect("a mail");
        let text = String::from_utf8(mail.formatted()).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(!head.to_lowercase().contains("\r\nbcc"), "{head}");
        for line in ["\r\nMIME-Version: 1.0\r\n", "\r\nAuto-Submitted: auto-generated\r\n"] {
            assert_eq!(head.matches(line).count(), 1, "{line}: {head}");
        }
        assert_eq!(mail.envelope().to().len(), 1);
        assert!(!body.contains("\r\n.\r\n"), "{body}");
    }
}
