//! The words of Redis before it closes a connection that it does not take: a client that writes first sees no more than a
//! broken pipe.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use redis::ConnectionAddr;

use super::store_error::{StoreError, TOO_MANY_CLIENTS};

/// The longest wait for its words. A Redis that takes a connection says nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// The bytes of its words that are read.
const BYTES_MAX: u64 = 256;

/// Returns the error with the reason that Redis gives, if it refuses connections; else the error as it is.
pub(super) async fn explained(
    error: StoreError,
    place: &ConnectionAddr,
    address: &str,
) -> StoreError {
    // The crate may take these words for the answer to its login.
    if !matches!(error, StoreError::Unreachable { .. }) && !error.is_login_refused() {
        return error;
    }
    let place = place.clone();
    let asked = tokio::task::spawn_blocking(move || words(&place));
    match tokio::time::timeout(2 * PATIENCE, asked).await {
        Ok(Ok(Some(said))) if said.contains(TOO_MANY_CLIENTS) => {
            StoreError::too_many_clients(address)
        }
        _ => error,
    }
}

fn words(place: &ConnectionAddr) -> Option<String> {
    match place {
        ConnectionAddr::Tcp(host, port) => {
            let mut addresses = (host.as_str(), *port).to_socket_addrs().ok()?;
            let stream = TcpStream::connect_timeout(&addresses.next()?, PATIENCE).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            read(stream)
        }
        ConnectionAddr::Unix(path) => {
            let stream = UnixStream::connect(path).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            read(stream)
        }
        _ => None,
    }
}

fn read(stream: impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    stream.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
