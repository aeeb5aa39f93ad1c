//! Sessions: a visitor who gave a token gets a random one in a cookie instead. A session ends with its token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::rpc::Caller;

/// The maximum number of sessions; of the caller who has most, the session that was unused for longest makes
/// room for another.
const SESSIONS_MAX: usize = 1000;
/// A session that is unused for so long ends.
const IDLE_MAX: Duration = Duration::from_hours(12);
/// A session ends so long after its sign-in.
const AGE_MAX: Duration = Duration::from_hours(24 * 7);
/// After this time the token is checked again, since it may be revoked.
const CHECKED_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Sessions {
    /// By the hash of the cookie's value.
    open: Mutex<HashMap<[u8; 32], WebSession>>,
    /// Signs the tokens against forgery.
    key: hmac::Key,
    random: SystemRandom,
}

struct WebSession {
    caller: Arc<Caller>,
    token: Zeroizing<String>,
    began: Instant,
    used: Instant,
    checked: Instant,
}

pub(super) enum FoundSession {
    /// It is in force.
    Live(Arc<Caller>),
    /// Its token is to be checked again.
    Check(Zeroizing<String>),
}

impl Sessions {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let mut bytes = Zeroizing::new([0_u8; 32]);
        // The kernel gives random bytes, or the process cannot run at all.
        if random.fill(bytes.as_mut()).is_err() {
            bytes = Zeroizing::new(rand_of_ids());
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes.as_ref());
        Self { open: Mutex::new(HashMap::new()), key, random }
    }

    /// Opens a session. Returns the secret for its cookie, or `None` without random bytes.
    pub(super) fn open(&self, caller: Arc<Caller>, token: &str, now: Instant) -> Option<String> {
        let secret = self.secret()?;
        let mut open = self.lock();
        open.retain(|_, session| !session.is_over(now));
        if open.len() >= SESSIONS_MAX {
            let mut of_caller: HashMap<&str, usize> = HashMap::new();
            open.values().for_each(|of| *of_caller.entry(&of.caller.name).or_default() += 1);
            let most = of_caller.values().copied().max().unwrap_or_default();
            let of_most = open.iter().filter(|(_, of)| of_caller[&*of.caller.name] == most);
            let oldest = of_most.min_by_key(|(_, of)| of.used).map(|(id, _)| *id);
            oldest.and_then(|id| open.remove(&id));
        }
        let token = Zeroizing::new(token.to_owned());
        let session = WebSession { caller, token, began: now, used: now, checked: now };
        open.insert(hash(&secret), session);
        Some(secret)
    }

    /// Returns a random secret for a cookie, or `None` without random bytes.
    pub(super) fn secret(&self) -> Option<String> {
        let mut bytes = [0_u8; 32];
        self.random.fill(&mut bytes).ok()?;
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub(super) fn find(&self, secret: &str, now: Instant) -> Option<FoundSession> {
        let id = hash(secret);
        let mut open = self.lock();
        if open.get(&id)?.is_over(now) {
            open.remove(&id);
            return None;
        }
        let session = open.get_mut(&id)?;
        session.used = now;
        if now.duration_since(session.checked) >= CHECKED_EVERY {
            return Some(FoundSession::Check(session.token.clone()));
        }
        Some(FoundSession::Live(session.caller.clone()))
    }

    /// Returns the token of a session that is in force, which is not used by that.
    pub(super) fn token(&self, secret: &str, now: Instant) -> Option<Zeroizing<String>> {
        let open = self.lock();
        let session = open.get(&hash(secret)).filter(|session| !session.is_over(now))?;
        Some(session.token.clone())
    }

    pub(super) fn checked(&self, secret: &str, caller: Arc<Caller>, now: Instant) {
        if let Some(session) = self.lock().get_mut(&hash(secret)) {
            session.caller = caller;
            session.checked = now;
        }
    }

    pub(super) fn close(&self, secret: &str) {
        self.lock().remove(&hash(secret));
    }

    /// Returns the token against forgery of a visitor: of a session by its secret, of another by its name.
    pub(super) fn forgery_token(&self, visitor: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, visitor.as_bytes()))
    }

    /// Returns true if a form has the token of its visitor.
    pub(super) fn is_of(&self, visitor: &str, given: &str) -> bool {
        let given = URL_SAFE_NO_PAD.decode(given).unwrap_or_default();
        hmac::verify(&self.key, visitor.as_bytes(), &given).is_ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], WebSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebSession {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.used) > IDLE_MAX || now.duration_since(self.began) > AGE_MAX
    }
}

fn hash(secret: &str) -> [u8; 32] {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    id
}

/// Random bytes from two random ids.
fn rand_of_ids() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Bounds, Scopes};

    fn caller(name: &str) -> Arc<Caller> {
        let scopes = Scopes::all();
        Arc::new(Caller { name: name.to_owned(), scopes, bounds: Bounds::default() })
    }

    fn is_live(found: Option<&FoundSession>) -> bool {
        matches!(found, Some(FoundSession::Live(_)))
    }

    #[test]
    fn session_ends_when_it_is_closed_idle_or_old() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let secret = sessions.open(caller("ops"), "token", now).expect("random bytes");
        assert!(is_live(sessions.find(&secret, now).as_ref()));
        assert!(sessions.find("another", now).is_none());
        assert!(sessions.find(&secret, now + IDLE_MAX + Duration::from_secs(1)).is_none());
        let secret = sessions.open(caller("ops"), "token", now).expect("random bytes");
        sessions.close(&secret);
        assert!(sessions.find(&secret, now).is_none());
    }

    #[test]
    fn token_of_a_session_is_checked_again_from_time_to_time() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let secret = sessions.open(caller("ops"), "token", now).expect("random bytes");
        let later = now + CHECKED_EVERY;
        let Some(FoundSession::Check(token)) = sessions.find(&secret, later) else {
            panic!("it is not to be checked")
        };
        assert_eq!(token.as_str(), "token");
        sessions.checked(&secret, caller("ops"), later);
        assert!(is_live(sessions.find(&secret, later).as_ref()));
    }

    #[test]
    fn table_of_sessions_is_bounded() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let first = sessions.open(caller("ops"), "token", now).expect("random bytes");
        for _ in 0..SESSIONS_MAX {
            sessions.open(caller("ops"), "token", now + Duration::from_secs(1));
        }
        assert!(sessions.find(&first, now).is_none());
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        // The session of another caller stays.
        let other = sessions.open(caller("ann"), "token", now).expect("random bytes");
        sessions.open(caller("ops"), "token", now + Duration::from_secs(2));
        assert!(is_live(sessions.find(&other, now).as_ref()));
    }

    #[test]
    fn token_against_forgery_is_of_one_visitor() {
        let (sessions, others) = (Sessions::new(), Sessions::new());
        let token = sessions.forgery_token("ops");
        assert!(sessions.is_of("ops", &token));
        assert!(!sessions.is_of("other", &token) && !others.is_of("ops", &token));
        assert!(!sessions.is_of("ops", "") && !sessions.is_of("ops", "%%"));
    }
}
