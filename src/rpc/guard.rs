//! The checks that each request passes first: names of hosts and origins, forwarded headers, and the login.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tracing::{debug, warn};

use super::caller::Caller;
use super::json::{RpcAnswers, Sender};
use super::login::PEER;
use super::places::ConnectionPlace;
use super::request_trace::{TRACE, trace_of_headers};
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use crate::config::ApiConfig;
use crate::proto::text::shown;

/// A connection, put into the extensions of its requests by the listener.
#[derive(Clone)]
pub(super) struct Connection {
    /// The address of a TCP client; `None` over a Unix socket.
    pub(super) address: Option<IpAddr>,
    /// The address or the user, for the log.
    pub(super) peer: Arc<str>,
    /// The caller, if the kernel tells it.
    pub(super) caller: Option<Arc<Caller>>,
    pub(super) is_secure: bool,
}

#[derive(Clone)]
pub(super) struct Guarded {
    pub(super) service: ApiService,
    pub(super) refused: RefusedPage,
}

/// Returns the page that says why a request was refused.
pub type RefusedPage = Arc<dyn Fn(StatusCode, &str) -> Response + Send + Sync>;

/// The way that a request arrived, in the extensions of each request.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The address of the client, or its user, for the log.
    pub peer: Arc<str>,
    /// True if the client used TLS, here or at a trusted proxy.
    pub is_secure: bool,
    pub token: Option<Arc<str>>,
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Lets a request pass, with its caller in the extensions if it is known.
pub(super) async fn guard(
    State(Guarded { service, refused }): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let settings = service.settings();
    let Some(connection) = request.extensions_mut().remove::<Connection>() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let forwarded = forwarded(&connection, &settings, request.headers_mut());
    let peer: Arc<str> = match forwarded.address {
        Some(address) if Some(address) != connection.address => address.to_string().into(),
        _ => Arc::clone(&connection.peer),
    };
    let is_rpc = is_of_api(request.uri().path());
    if let Err(error) = check_names(&forwarded, &settings, &request) {
        debug!(%peer, "refused a request: {error}");
        if !is_rpc && wants_page(request.headers()) {
            return refused(error.status(), &error.message);
        }
        return refusal(&error, is_rpc);
    }
    let token: Option<Arc<str>> = bearer(request.headers()).map(Into::into);
    let caller = match &token {
        None => connection.caller.clone(),
        Some(secret) => match service.login.check_from(secret, &peer).await {
            Ok(None) => {
                let message = "the token is not known, has expired or was revoked";
                return refusal(&RpcError::new(code::UNAUTHENTICATED, message), is_rpc);
            }
            Err(error) => {
                return refusal(&error.over_http(StatusCode::SERVICE_UNAVAILABLE), is_rpc);
            }
            Ok(found) => found,
        },
    };
    let is_secure = connection.is_secure || forwarded.is_secure;
    let trace = trace_of_headers(request.headers());
    let extensions = request.extensions_mut();
    extensions.insert(Arrival { peer: Arc::clone(&peer), is_secure, token: token.clone() });
    let (socket, caller_of_calls) = (None, caller.clone());
    let sender = Sender { caller: caller_of_calls, peer: Arc::clone(&peer), token, socket, trace };
    extensions.insert(sender);
    let place = extensions.get::<Arc<ConnectionPlace>>();
    if let Some((place, caller)) = place.cloned().zip(caller.as_ref()) {
        place.of_known_caller(&caller.name).await;
    }
    if let Some(caller) = caller {
        extensions.insert(caller);
    }
    PEER.scope(peer, TRACE.scope(trace.into(), next.run(request))).await
}

/// The word of a trusted proxy about a request.
#[derive(Default)]
struct Forwarded {
    address: Option<IpAddr>,
    host: Option<String>,
    is_secure: bool,
}

/// Returns true if a browser asks for a page.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Returns true if a request has the origin `null`: its browser does not tell where the page is from.
pub fn has_hidden_origin(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin == "null")
}

/// Reads the headers of a trusted proxy, and removes them all.
fn forwarded(connection: &Connection, settings: &ApiConfig, headers: &mut HeaderMap) -> Forwarded {
    let of_proxy =
        |address: IpAddr| settings.trusted_proxies.iter().any(|network| network.contains(address));
    let values = [FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO]
        .map(|name| headers.remove(name).and_then(|value| value.to_str().ok().map(str::to_owned)));
    let Some(address) = connection.address.filter(|address| of_proxy(*address)) else {
        return Forwarded { address: connection.address, ..Forwarded::default() };
    };
    let [hops, host, proto] = values;
    // The last address that is not of a proxy: those before it may be forged by the client.
    let hops = hops.unwrap_or_default();
    let client = hops.rsplit(',').map_while(|hop| hop.trim().parse().ok());
    let client = client.into_iter().find(|hop| !of_proxy(*hop));
    let last = |text: String| text.rsplit(',').next().unwrap_or_default().trim().to_owned();
    Forwarded {
        address: Some(client.unwrap_or(address)),
        host: host.map(last).filter(|host| !host.is_empty()),
        is_secure: proto.map(last).as_deref() == Some("https"),
    }
}

/// Refuses names of hosts that are not known, and requests of pages of other origins.
fn check_names(forwarded: &Forwarded, settings: &ApiConfig, request: &Request) -> Result<()> {
    let refused = |status: StatusCode, message: String| {
        Err(RpcError::new(code::NOT_PERMITTED, message).over_http(status))
    };
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = match (&forwarded.host, text(header::HOST)) {
        (Some(host), _) => host.as_str(),
        (None, Some(host)) => host,
        (None, None) => {
            return refused(StatusCode::BAD_REQUEST, "the header Host is missing".to_owned());
        }
    };
    if headers.get_all(header::HOST).iter().count() > 1 {
        return refused(StatusCode::BAD_REQUEST, "there are two headers Host".to_owned());
    }
    // A browser that was given this machine's address under another name sends that name; a tunnel brings it to the local socket.
    if !is_known_host(host, settings) {
        let message = format!(
            "the host {} is not known: call by an address, or add the name to api.hosts",
            shown(host)
        );
        return refused(StatusCode::MISDIRECTED_REQUEST, message);
    }
    let is_upgrade = headers.contains_key(header::UPGRADE);
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD) && !is_upgrade;
    let Some(origin) = headers.get(header::ORIGIN).filter(|_| !is_safe) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let known = origin.split_once("://").is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https")
            && (authority.eq_ignore_ascii_case(host)
                || settings.hosts.iter().any(|name| name_of(authority) == Some(name.as_str())))
    });
    if known || is_own_form(request) {
        return Ok(());
    }
    let (origin, host) = (shown(origin), shown(host));
    let message = if name_of(origin.split_once("://").map_or("", |(_, name)| name)).is_some() {
        format!(
            "a page of {origin} may not call {host}; if both are the same site, let its proxy keep the \
             header Host, or add the name to api.hosts"
        )
    } else {
        format!(
            "the browser does not tell which page sent this (Origin: {origin}); open the page at {host} \
             itself, in no frame, and repeat it there"
        )
    };
    refused(StatusCode::FORBIDDEN, message)
}

/// Returns true for a form of a page whose origin the browser hides, but which it says to be of this site.
/// The pages then check the form's token against forgery. Methods of the API have no such token.
fn is_own_form(request: &Request) -> bool {
    let headers = request.headers();
    let site = headers.get("sec-fetch-site");
    has_hidden_origin(headers)
        && site.is_some_and(|site| site == "same-origin")
        && !headers.contains_key(header::UPGRADE)
        && !is_of_api(request.uri().path())
}

/// Returns true for the paths of methods; all others are pages.
fn is_of_api(path: &str) -> bool {
    matches!(path, "/rpc" | "/mcp")
}

/// Returns true for an address, `localhost`, and the configured names: none of them is a name that
/// another can let point here.
fn is_known_host(host: &str, settings: &ApiConfig) -> bool {
    let Some(name) = name_of(host) else { return false };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || settings.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the name of an authority, without its port; `None` if it is not legal.
fn name_of(authority: &str) -> Option<&str> {
    let parsed: Uri = authority.parse().ok()?;
    let parsed = parsed.authority()?;
    let length = parsed.host().len();
    (parsed.as_str() == authority && authority.starts_with(parsed.host()))
        .then(|| &authority[..length])
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    // A header that cannot be read is a wrong token, not none.
    let Ok(value) = value.to_str() else { return Some("") };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        _ => Some(""),
    }
}

/// Returns the refusal of a request: as a response of JSON-RPC, or of a call by a path.
pub(super) fn refusal(error: &RpcError, is_rpc: bool) -> Response {
    let text = if is_rpc {
        RpcAnswers::error(error).text.unwrap_or_default()
    } else {
        format!("{}\n", json!({ "error": error }))
    };
    json_text(error.status(), text)
}

pub(super) fn json_text(status: StatusCode, text: String) -> Response {
    let json = HeaderValue::from_static("application/json");
    asking_for_token((status, [(header::CONTENT_TYPE, json)], text).into_response())
}

/// Asks a caller that is not known for a token.
pub(crate) fn asking_for_token(mut response: Response) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        let asked = HeaderValue::from_static("Bearer realm=\"hero\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, asked);
    }
    response
}

pub(super) fn log_disconnected(peer: &str, reason: &str) {
    warn!(peer, "disconnected {peer}: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn connection(address: &str) -> Connection {
        let address: IpAddr = address.parse().expect(address);
        let peer = address.to_string().into();
        Connection { address: Some(address), peer, caller: None, is_secure: false }
    }

    fn settings(proxies: &[&str], hosts: &[&str]) -> ApiConfig {
        ApiConfig {
            trusted_proxies: proxies.iter().map(|text| text.parse().expect(text)).collect(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..ApiConfig::default()
        }
    }

    fn checked(settings: &ApiConfig, method: Method, headers: &[(&str, &str)]) -> Option<u16> {
        checked_at("/rpc", settings, method, headers)
    }

    fn checked_at(
        path: &str,
        settings: &ApiConfig,
        method: Method,
        headers: &[(&str, &str)],
    ) -> Option<u16> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).expect("a request");
        let connection = connection("127.0.0.1");
        let forwarded = forwarded(&connection, settings, request.headers_mut());
        let checked = check_names(&forwarded, settings, &request);
        checked.err().map(|error| error.status().as_u16())
    }

    #[test]
    fn names_that_another_can_point_here_are_refused() {
        let settings = settings(&[], &["hero.example.org"]);
        for host in ["127.0.0.1", "127.0.0.1:8470", "[::1]:8470", "localhost:1", "LOCALHOST"] {
            assert_eq!(checked(&settings, Method::GET, &[("host", host)]), None, "{host}");
        }
        let known = [("host", "hero.example.org:8470")];
        assert_eq!(checked(&settings, Method::GET, &known), None);
        for host in ["evil.example", "127.0.0.1.evil.example", "a@127.0.0.1", "", "127.0.0.1/x"] {
            let refused = checked(&settings, Method::GET, &[("host", host)]);
            assert_eq!(refused, Some(421), "{host}");
        }
        assert_eq!(checked(&settings, Method::GET, &[]), Some(400));
        let two = [("host", "127.0.0.1"), ("host", "evil.example")];
        assert_eq!(checked(&settings, Method::GET, &two), Some(400));
    }

    #[test]
    fn pages_of_other_origins_may_not_change_anything_or_open_a_websocket() {
        let settings = settings(&[], &["hero.example.org"]);
        let own = ("host", "127.0.0.1:8470");
        let with =
            |method, more: &[(&str, &str)]| checked(&settings, method, &[&[own], more].concat());
        assert_eq!(with(Method::POST, &[("origin", "http://127.0.0.1:8470")]), None);
        assert_eq!(with(Method::POST, &[("origin", "https://hero.example.org")]), None);
        for origin in ["null", "http://evil.example", "http://127.0.0.1:1", "127.0.0.1:8470", ""] {
            assert_eq!(with(Method::POST, &[("origin", origin)]), Some(403), "{origin}");
            let upgrade = [("origin", origin), ("upgrade", "websocket")];
            assert_eq!(with(Method::GET, &upgrade), Some(403), "{origin}");
        }
        assert_eq!(with(Method::GET, &[("origin", "http://evil.example")]), None);
    }

    #[test]
    fn form_with_a_hidden_origin_is_taken_if_the_browser_says_it_is_of_the_same_origin() {
        let settings = settings(&[], &[]);
        let (own, hidden) = (("host", "127.0.0.1:8470"), ("origin", "null"));
        let sent = |path: &str, more: &[(&str, &str)]| {
            checked_at(path, &settings, Method::POST, &[&[own, hidden], more].concat())
        };
        let same = ("sec-fetch-site", "same-origin");
        assert_eq!(sent("/login", &[same]), None);
        assert_eq!(sent("/login", &[]), Some(403));
        for site in ["cross-site", "same-site", "none", ""] {
            assert_eq!(sent("/login", &[("sec-fetch-site", site)]), Some(403), "{site}");
        }
        for path in ["/rpc", "/mcp"] {
            assert_eq!(sent(path, &[same]), Some(403), "{path}");
        }
        assert_eq!(sent("/events", &[same, ("upgrade", "websocket")]), Some(403));
    }

    #[test]
    fn forwarded_headers_count_from_trusted_proxies_only() {
        let headers = || {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED_FOR, HeaderValue::from_static("6.6.6.6, 9.9.9.9, 10.0.0.2"));
            headers.insert(FORWARDED_HOST, HeaderValue::from_static("hero.example.org"));
            headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
            headers
        };
        let settings = settings(&["10.0.0.0/8"], &[]);
        let mut of_client = headers();
        let told = forwarded(&connection("9.9.9.9"), &settings, &mut of_client);
        assert_eq!(told.address, Some("9.9.9.9".parse().expect("legal")));
        assert!(told.host.is_none() && !told.is_secure && of_client.is_empty());
        let told = forwarded(&connection("10.0.0.1"), &settings, &mut headers());
        assert_eq!(told.address, Some("9.9.9.9".parse().expect("legal")), "not the forged one");
        assert_eq!(told.host.as_deref(), Some("hero.example.org"));
        assert!(told.is_secure);
    }
}
