//! Shards: the namespaces that hold the jobs of one system together, and which of them holds what.
//!
//! The home shard is the namespace as it is configured, so a system with one shard has nothing else, and
//! more shards move nothing that is in it. Shard 3 of `hero` is the namespace `{hero-3}`, and its jobs have
//! ids that begin with `s3-`. Every other id belongs to the home shard.

use std::fmt;
use std::num::NonZeroU16;

use ring::digest::{SHA256, digest};

use super::job::JobId;
use super::keys::Namespace;

/// The number of a shard, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardCount(NonZeroU16);

/// An id of a shard that the configuration does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is an id of shard {shard}, but the configuration has the shards 0 to {}: compare redis.shards \
     with the other machines",
    id.escape_debug(),
    count.get() - 1
)]
pub struct NoSuchShard {
    id: String,
    shard: u64,
    count: ShardCount,
}

impl Shard {
    /// The shard that has the configured namespace.
    pub const HOME: Self = Self(0);

    pub fn number(self) -> u16 {
        self.0
    }

    pub fn namespace(self, configured: &Namespace) -> Namespace {
        if self == Self::HOME {
            return configured.clone();
        }
        let text = configured.as_str();
        let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        // The configuration was checked with the longest number.
        format!("{{{bare}-{}}}", self.0).parse().unwrap_or_else(|_| configured.clone())
    }

    /// Returns the id that names its shard.
    pub fn id(self, id: &JobId) -> JobId {
        if self == Self::HOME {
            return id.clone();
        }
        let told: Result<JobId, _> = format!("s{}-{id}", self.0).parse();
        told.unwrap_or_else(|_| id.clone())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ShardCount {
    /// The home shard alone.
    pub const ONE: Self = Self(NonZeroU16::MIN);
    pub const MAX: u16 = 256;

    /// Returns a count of 1 to [`ShardCount::MAX`].
    pub fn new(count: u16) -> Option<Self> {
        NonZeroU16::new(count).filter(|count| count.get() <= Self::MAX).map(Self)
    }

    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Returns all shards, the home shard first.
    pub fn shards(self) -> impl Iterator<Item = Shard> {
        (0..self.get()).map(Shard)
    }

    pub fn shard(self, number: u16) -> Option<Shard> {
        (number < self.get()).then_some(Shard(number))
    }

    /// Returns the shard of an id, or of the beginning of one.
    pub fn shard_of(self, id: &str) -> Result<Shard, NoSuchShard> {
        let Some(number) = self.number_in(id) else { return Ok(Shard::HOME) };
        u16::try_from(number)
            .ok()
            .and_then(|number| self.shard(number))
            .ok_or_else(|| NoSuchShard { id: id.to_owned(), shard: number, count: self })
    }

    /// Reads the number of `sNUMBER-…`; none without shards, or with a zero before it.
    fn number_in(self, id: &str) -> Option<u64> {
        if self == Self::ONE {
            return None;
        }
        let (number, _) = id.strip_prefix('s')?.split_once('-')?;
        let is_number = !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit());
        number.parse().ok().filter(|_| is_number)
    }

    /// Returns the shard of a key: that with the largest SHA-256 of `NUMBER:KEY`. One more shard takes its
    /// part of the keys from all others, and moves none between them.
    pub fn place(self, key: &str) -> Shard {
        let weight = |shard: &Shard| {
            let hash = digest(&SHA256, format!("{shard}:{key}").as_bytes());
            <[u8; 32]>::try_from(hash.as_ref()).unwrap_or_default()
        };
        if self == Self::ONE {
            return Shard::HOME;
        }
        self.shards().max_by_key(weight).unwrap_or(Shard::HOME)
    }
}

impl Default for ShardCount {
    fn default() -> Self {
        Self::ONE
    }
}

impl NoSuchShard {
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(number: u16) -> ShardCount {
        ShardCount::new(number).expect("a legal count")
    }

    #[test]
    fn ids_name_their_shard_and_all_others_are_at_home() {
        let id: JobId = "1b4e28ba".parse().expect("an id");
        for shard in count(16).shards() {
            assert_eq!(count(16).shard_of(shard.id(&id).as_str()), Ok(shard));
        }
        for other in
            ["1b4e28ba", "s-1", "s03-1", "s3", "sx-1", "s0-1", "s+3-1", "s99999999999999999999-1"]
        {
            assert_eq!(count(16).shard_of(other), Ok(Shard::HOME), "{other}");
        }
        assert!(
            count(16).shard_of("s16-1").expect_err("there is none").to_string().contains("0 to 15")
        );
        assert_eq!(ShardCount::ONE.shard_of("s16-1"), Ok(Shard::HOME));
    }

    #[test]
    fn one_more_shard_takes_keys_from_all_and_moves_none_between_the_others() {
        let keys: Vec<String> = (0..4000).map(|key| format!("osis:g{key}")).collect();
        let mut moved = 0;
        for key in &keys {
            let (before, after) = (count(4).place(key), count(5).place(key));
            if before != after {
                assert_eq!(after.number(), 4, "{key} moved between old shards");
                moved += 1;
            }
        }
        assert!((600..1000).contains(&moved), "{moved} of 4000 moved");
    }

    #[test]
    fn the_home_shard_has_the_configured_namespace() {
        let namespace: Namespace = "hero".parse().expect("legal");
        let names: Vec<String> =
            count(3).shards().map(|shard| shard.namespace(&namespace).to_string()).collect();
        assert_eq!(names, ["hero", "{hero-1}", "{hero-2}"]);
        let tagged: Namespace = "{hero}".parse().expect("legal");
        assert_eq!(count(3).shard(2).expect("there").namespace(&tagged).as_str(), "{hero-2}");
    }

    #[test]
    fn many_queues_spread_evenly_over_many_shards() {
        let mut queues = [0_u32; 64];
        for number in 0..10_000 {
            let place = count(64).place(&format!("type{}:group{number}", number % 7));
            queues[usize::from(place.number())] += 1;
        }
        // 156 each on average.
        let (least, most) = (queues.iter().min(), queues.iter().max());
        assert!(least > Some(&110) && most < Some(&210), "{least:?} to {most:?}");
    }
}
