//! Binds the sockets of the listener.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, chown};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tracing::{debug, info};

use crate::config::Listen;

pub(super) enum Bound {
    Unix(UnixListener, Socket),
    Tcp(TcpListener, SocketAddr),
}

/// The file of a Unix socket; removed when it is dropped, unless another process replaced it.
pub(super) struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds an address. The file of a dead process's socket is replaced, never a socket that answers.
pub(super) async fn bind(address: &Listen, group: String) -> Result<Bound, String> {
    let failed = |error: io::Error| format!("cannot serve the API on {address}: {error}");
    match address {
        Listen::Tcp(at) => {
            let listener = TcpListener::bind(at).await.map_err(failed)?;
            let at = listener.local_addr().map_err(failed)?;
            Ok(Bound::Tcp(listener, at))
        }
        Listen::Unix(path) => {
            remove_dead(path).await.map_err(failed)?;
            let listener = UnixListener::bind(path).map_err(failed)?;
            let socket = Socket { path: path.clone(), inode: inode(path).map_err(failed)? };
            // For nobody, until it has its group.
            let (path, of_group) = (path.clone(), group.clone());
            let given = tokio::task::spawn_blocking(move || give(&path, &of_group)).await;
            given.map_err(|error| failed(error.into()))?.map_err(failed)?;
            Ok(Bound::Unix(listener, socket))
        }
    }
}

fn inode(path: &Path) -> io::Result<u64> {
    std::fs::symlink_metadata(path).map(|data| data.ino())
}

/// Removes the socket of a process that is gone, and makes the folder.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let data = match std::fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            return match std::fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            };
        }
        Err(error) => return Err(error),
    };
    if !data.file_type().is_socket() {
        let message = "there is a file that is not a socket; remove it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            info!("replaced the socket {} of a process that is gone", path.display());
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves it")),
    }
}

/// Gives a socket to the group.
fn give(path: &Path, group: &str) -> io::Result<()> {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    let gid = Group::from_name(group).ok().flatten().map(|group| group.gid);
    // A unit may change no owners; the socket has the daemon's group from its start.
    let is_given = |gid: Gid| std::fs::metadata(path).is_ok_and(|data| data.gid() == gid.as_raw());
    if let Some(gid) = gid
        && !is_given(gid)
        && let Err(error) = chown(path, None, Some(gid))
    {
        debug!("cannot give {} to the group {group}: {error}", path.display());
        // Its group is the daemon's, whose members may not be meant.
        return Ok(());
    }
    let mode = if gid.is_some() { 0o660 } else { 0o600 };
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
}
