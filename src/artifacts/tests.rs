//! The folder on a real disk: what is kept, what is refused, and what is taken out of it.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::*;
use crate::config::ArtifactFolder;

const KIB: u64 = 1024;
/// The SHA-256 of 100 KiB of zeros, as sha256sum writes it.
const ZEROS: &str = "f627ca4c2c322f15db26152df306bd4f983f0146409b81a4341b9b340c365a16";

fn place(dir: &Path) -> ArtifactFolder {
    let retention = Duration::ZERO;
    ArtifactFolder { dir: dir.to_owned(), own: dir.join("h.files"), max_size: 200 * KIB, retention }
}

fn contents(dir: &Path) -> Contents {
    let artifacts = Some(place(dir));
    Contents::of(&JobConfig { files_size_max: 150 * KIB, artifacts, ..JobConfig::default() })
}

fn take(contents: &Contents, len: u64) -> Result<FileBody, ArtifactError> {
    contents.take(&mut Cursor::new(vec![0; usize::try_from(len).expect("small")]), 150 * KIB)
}

fn artifact(contents: &Contents, len: u64) -> Artifact {
    match take(contents, len).expect("kept") {
        FileBody::Artifact(artifact) => artifact,
        FileBody::Bytes(_) => panic!("it is in memory"),
    }
}

/// Makes a file look as old as this.
fn age(path: &Path, hours: i64) {
    let now = TimeSpec::from_duration(
        fs::metadata(path)
            .expect("data")
            .modified()
            .expect("a time")
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970"),
    );
    let then = TimeSpec::new(now.tv_sec() - hours * 3600, 0);
    let at = nix::fcntl::AT_FDCWD;
    utimensat(at, path, &then, &then, UtimensatFlags::NoFollowSymlink).expect("set");
}

fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for part in fs::read_dir(dir.join("h.files")).expect("read") {
        for file in fs::read_dir(part.expect("read").path()).expect("read") {
            found.push(file.expect("read").file_name().into_string().expect("text"));
        }
    }
    found
}

#[test]
fn large_content_is_a_file_with_its_hash_and_a_small_one_is_in_memory() {
    let dir = tempfile::tempdir().expect("a folder");
    let contents = contents(dir.path());
    assert!(
        matches!(take(&contents, 64 * KIB), Ok(FileBody::Bytes(bytes)) if bytes.len() == 65_536)
    );
    assert!(!dir.path().join("h.files").exists(), "nothing was written");
    let kept = artifact(&contents, 100 * KIB);
    assert_eq!((kept.hash.as_str(), kept.size), (ZEROS, 100 * KIB));
    assert_eq!(artifact(&contents, 100 * KIB), kept, "the same again");
    assert_eq!(files(dir.path()), [ZEROS]);
    let mode = |path: &str| {
        fs::metadata(dir.path().join(path)).expect("data").permissions().mode() & 0o777
    };
    let file = format!("h.files/{}/{ZEROS}", &ZEROS[..2]);
    assert_eq!((mode("h.files"), mode(&file)), (0o700, 0o600));
    let mut copy = Vec::new();
    contents.give(&FileBody::Artifact(kept.clone()), &mut copy).expect("given");
    assert_eq!(copy, vec![0; 100 << 10]);
    assert!(contents.bytes(FileBody::Artifact(kept), 99 * KIB).is_err());
}

#[test]
fn content_over_a_bound_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let contents = contents(dir.path());
    let error = take(&contents, 200 * KIB + 1).expect_err("too large").to_string();
    assert_eq!(error, "larger than the limit of 200KiB (artifacts.max_size)");
    assert!(files(dir.path()).is_empty());
    let without = Contents::of(&JobConfig { files_size_max: KIB, ..JobConfig::default() });
    let error = without.take(&mut Cursor::new([0; 2000]), KIB).expect_err("too large").to_string();
    assert_eq!(
        error,
        "larger than the limit of 1KiB (job.files_size_max); for larger files set artifacts.dir, see hero.toml(5)"
    );
}

#[test]
fn missing_and_damaged_contents_are_errors_with_folder_and_hash() {
    let dir = tempfile::tempdir().expect("a folder");
    let contents = contents(dir.path());
    let kept = artifact(&contents, 100 * KIB);
    let path = dir.path().join(format!("h.files/{}/{ZEROS}", &ZEROS[..2]));
    let said = || {
        let content = FileBody::Artifact(kept.clone());
        contents.give(&content, &mut Vec::new()).expect_err("not as it was").to_string()
    };
    fs::write(&path, vec![1; 100 << 10]).expect("written");
    assert!(said().contains("is damaged") && said().contains(ZEROS));
    fs::write(&path, vec![0; 101 << 10]).expect("written");
    assert!(said().contains("is damaged"));
    let mut reader =
        contents.reader(FileBody::Artifact(kept.clone()), 0..kept.size).expect("a folder");
    assert_eq!(reader.next_block(99 << 10).expect("read").map(|block| block.len()), Some(99 << 10));
    let last = reader.next_block(99 << 10).expect_err("damaged").to_string();
    assert!(last.contains("is damaged"), "the last block of a damaged content was given: {last}");
    fs::remove_file(&path).expect("removed");
    let folder = dir.path().display().to_string();
    assert!(said().starts_with("no content with") && said().contains(&folder), "{}", said());
    assert!(contents.touch(&kept).is_err());
}

#[test]
fn only_old_contents_are_set_aside_and_they_can_be_put_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let contents = contents(dir.path());
    let folder = ContentFolder::new(place(dir.path()));
    let kept = artifact(&contents, 100 * KIB);
    let part = u8::from_str_radix(&ZEROS[..2], 16).expect("hexadecimal");
    let path = dir.path().join(format!("h.files/{}/{ZEROS}", &ZEROS[..2]));
    let foreign = path.with_file_name("another file");
    fs::write(&foreign, "x").expect("written");
    age(&foreign, 100);
    let begun = dir.path().join("h.files/new/begun");
    fs::write(&begun, "x").expect("written");
    let now = folder.begin_round().expect("a round");
    assert!(folder.aged(part, now).expect("read").contents.is_empty(), "it is new");
    assert!(folder.set_aside(&kept.hash, now).expect("read").is_none() && path.exists());
    assert!(begun.exists());
    age(&path, 25);
    age(&begun, 25);
    folder.begin_round().expect("a round");
    assert!(!begun.exists());
    assert_eq!(folder.aged(part, now).expect("read").contents, std::slice::from_ref(&kept.hash));
    let aside = folder.set_aside(&kept.hash, now).expect("read").expect("it is old");
    assert!(!path.exists());
    aside.put_back().expect("put back");
    assert!(path.exists());
    contents.touch(&kept).expect("it exists");
    assert!(folder.set_aside(&kept.hash, now).expect("read").is_none() && path.exists());
    age(&path, 25);
    folder.set_aside(&kept.hash, now).expect("read").expect("old").delete().expect("deleted");
    assert!(folder.set_aside(&kept.hash, now).expect("read").is_none() && foreign.exists());
}

#[test]
fn folder_that_cannot_be_used_is_said_and_small_files_need_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let nowhere = dir.path().join("not/mounted");
    let contents = contents(&nowhere);
    assert!(take(&contents, KIB).is_ok());
    let error = take(&contents, 100 * KIB).expect_err("no folder").to_string();
    assert!(error.contains("not/mounted (artifacts.dir): no such file"), "{error}");
    let problem = |path: &Path| ContentFolder::new(place(path)).problem().unwrap_or_default();
    assert!(
        problem(&nowhere).contains("no such file or directory; make it a folder of the user hero")
    );
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("set");
    assert!(problem(dir.path()).ends_with("open to all users of the machine; chmod 0700"));
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).expect("set");
    assert_eq!(problem(dir.path()), "");
}

#[test]
fn part_of_a_content_is_read_in_blocks() {
    let dir = tempfile::tempdir().expect("a folder");
    let contents = contents(dir.path());
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).take(100 << 10).collect();
    let kept = contents.take(&mut Cursor::new(&bytes), 150 * KIB).expect("kept");
    for content in [kept, FileBody::Bytes(bytes.clone())] {
        let mut reader = contents.reader(content, 70_001..90_000).expect("a folder");
        let mut read = Vec::new();
        while let Some(block) = reader.next_block(4096).expect("read") {
            assert!(block.len() <= 4096);
            read.extend(block);
        }
        assert!(read == bytes[70_001..90_000]);
    }
}
