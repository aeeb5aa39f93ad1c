//! Dead letters: jobs that used up their attempts, or took down too many actors.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::str::FromStr;
use std::vec::IntoIter;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::listing::{illegal_cursor, write_fields};
use super::{Shards, Store, StoreError};
use crate::proto::job::JobId;
use crate::proto::shard::ShardCount;
use crate::proto::target::{IllegalName, ScriptType};

/// A filter of dead letters.
#[derive(Debug, Clone, Default)]
pub struct DeadFilter {
    /// Only jobs of this type.
    pub script_type: Option<ScriptType>,
    /// Only jobs whose error contains this text.
    pub error: Option<String>,
}

/// The end of a page of dead letters: how far it came in each shard. Its text has the shards one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCursor(Vec<DeadReach>);

/// The reach of a list of dead letters in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DeadReach {
    Begin,
    After(DeadPlace),
    End,
}

/// A place among the dead letters of one shard: the type, the place in its list, and the id there, if it is still
/// a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeadPlace {
    script_type: ScriptType,
    place: u64,
    id: Option<JobId>,
}

/// Ends the shards of a cursor.
const NEXT_SHARD: char = ',';
/// A shard without further dead letters.
const NO_MORE: &str = "-";

impl fmt::Display for DeadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, reach) in self.0.iter().enumerate() {
            if number > 0 {
                write!(f, "{NEXT_SHARD}")?;
            }
            match reach {
                DeadReach::Begin => {}
                DeadReach::End => f.write_str(NO_MORE)?,
                DeadReach::After(DeadPlace { script_type, place, id }) => {
                    write!(f, "{script_type}.{place}.{}", id.as_ref().map_or("", JobId::as_str))?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for DeadCursor {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let illegal = || illegal_cursor(value);
        let most = usize::from(ShardCount::MAX);
        let shards: Vec<&str> = value.split(NEXT_SHARD).take(most + 1).collect();
        if shards.len() > most || shards.iter().all(|shard| shard.is_empty()) {
            return Err(illegal());
        }
        let reach = |text: &str| match text {
            "" => Ok(DeadReach::Begin),
            NO_MORE => Ok(DeadReach::End),
            text => DeadPlace::read(text).map(DeadReach::After).ok_or_else(illegal),
        };
        shards.into_iter().map(reach).collect::<Result<_, _>>().map(Self)
    }
}

impl DeadPlace {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        Some(Self {
            script_type: parts.next()?.parse().ok()?,
            place: parts.next()?.parse().ok()?,
            id: match parts.next()? {
                "" => None,
                id => Some(id.parse().ok()?),
            },
        })
    }
}

/// A page of dead letters, and the cursor to its next page.
#[derive(Debug, Clone)]
pub struct DeadPage {
    /// The letters; a page may be short or empty with more to come.
    pub items: Vec<DeadLetter>,
    /// The cursor to the next page, if there may be one.
    pub next: Option<DeadCursor>,
}

/// A dead letter in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub id: JobId,
    /// The list it is in.
    pub script_type: ScriptType,
    /// Its last error, cut after [`DeadLetter::ERROR_BYTES_MAX`].
    pub error: String,
    /// Further fields of its hash, by their names.
    pub fields: BTreeMap<&'static str, String>,
}

impl Serialize for DeadLetter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.fields.len() + 3))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("script_type", &self.script_type)?;
        map.serialize_entry("error", &self.error)?;
        write_fields(&mut map, &self.fields)?;
        map.end()
    }
}

impl DeadLetter {
    /// The limit on the bytes of an error in a list.
    pub const ERROR_BYTES_MAX: usize = 1000;
}

/// The fields in a list beside the error.
pub const DEAD_FIELDS: [&str; 11] = [
    "name",
    "group",
    "instance",
    "attempt",
    "crashes",
    "exit_code",
    "actor",
    "caller_id",
    "context_id",
    "created_at",
    "finished_at",
];

/// Letters from the script: each has its id, error and fields.
type Rows = Vec<Vec<Vec<u8>>>;

/// Letters of one shard with their places, and the place of the next page.
type PlacedLetters = (Vec<(DeadLetter, u64)>, Option<DeadPlace>);

impl Shards {
    /// One page of dead letters, type by type, the newest of a type first. Removes ids whose job is
    /// gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_dead(
        &self,
        filter: &DeadFilter,
        limit: usize,
        after: Option<&DeadCursor>,
    ) -> Result<DeadPage, StoreError> {
        let limit = limit.clamp(1, Store::DEAD_PAGE_MAX);
        // By the places of these stores: one store of several shards has the first.
        let reach = |place: usize| {
            after.and_then(|cursor| cursor.0.get(place)).cloned().unwrap_or(DeadReach::Begin)
        };
        let reaches: Vec<DeadReach> = (0..self.all().len()).map(reach).collect();
        let page = async |store: &Store, from: DeadReach| match from {
            DeadReach::Begin => store.dead_page(filter, limit, None).await,
            DeadReach::After(place) => store.dead_page(filter, limit, Some(place)).await,
            DeadReach::End => Ok((Vec::new(), None)),
        };
        let mut from = reaches.iter().cloned();
        let pages = self.each(|store| page(store, from.next().unwrap_or(DeadReach::End))).await?;
        Ok(together(pages, reaches, limit))
    }
}

/// Takes the first letters of several shards.
fn together(pages: Vec<PlacedLetters>, mut reaches: Vec<DeadReach>, limit: usize) -> DeadPage {
    let mut pages: Vec<_> =
        pages.into_iter().map(|(letters, next)| (letters.into_iter().peekable(), next)).collect();
    let mut items = Vec::new();
    while items.len() < limit {
        let first = |(shard, (letters, _)): (usize, &mut (Peekable<IntoIter<_>>, _))| {
            let (letter, _): &(DeadLetter, u64) = letters.peek()?;
            let ended_at = letter.fields.get("finished_at").cloned();
            Some((letter.script_type.clone(), Reverse(ended_at), shard))
        };
        let Some((_, _, shard)) = pages.iter_mut().enumerate().filter_map(first).min() else {
            break;
        };
        let Some((letter, place)) = pages[shard].0.next() else { break };
        let (script_type, id) = (letter.script_type.clone(), Some(letter.id.clone()));
        reaches[shard] = DeadReach::After(DeadPlace { script_type, place, id });
        items.push(letter);
    }
    for (reach, (letters, next)) in reaches.iter_mut().zip(&mut pages) {
        if letters.peek().is_none() {
            *reach = next.take().map_or(DeadReach::End, DeadReach::After);
        }
    }
    let is_over = reaches.iter().all(|reach| *reach == DeadReach::End);
    DeadPage { items, next: (!is_over).then_some(DeadCursor(reaches)) }
}

impl Store {
    /// The largest page of dead letters.
    pub const DEAD_PAGE_MAX: usize = 500;

    /// One page of the dead letters of this shard.
    async fn dead_page(
        &self,
        filter: &DeadFilter,
        limit: usize,
        after: Option<DeadPlace>,
    ) -> Result<PlacedLetters, StoreError> {
        let types = match &filter.script_type {
            Some(only) => vec![only.clone()],
            None => self.types().await?,
        };
        let from = after.as_ref().map(|place| &place.script_type);
        let mut items = Vec::new();
        for script_type in types.into_iter().filter(|t| from.is_none_or(|from| t >= from)) {
            let mut after = after.clone().filter(|place| place.script_type == script_type);
            loop {
                let left = limit - items.len();
                let error = filter.error.as_deref();
                let (letters, next) =
                    self.dead_of(&script_type, error, left, after.as_ref()).await?;
                items.extend(letters);
                if items.len() >= limit {
                    // After a full page at the end of a list, the next type follows.
                    let next = next.or_else(|| {
                        let id = items.last().map(|(last, _): &(DeadLetter, u64)| last.id.clone());
                        Some(DeadPlace { script_type, place: 0, id })
                    });
                    return Ok((items, next));
                }
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok((items, None))
    }

    /// One step through the dead letters of a type.
    async fn dead_of(
        &self,
        script_type: &ScriptType,
        error: Option<&str>,
        limit: usize,
        after: Option<&DeadPlace>,
    ) -> Result<PlacedLetters, StoreError> {
        const DOING: &str = "listing dead letters";
        let mut script = self.scripts.list_dead.prepare_invoke();
        script
            .arg(script_type.as_str())
            .arg(after.and_then(|place| place.id.as_ref()).map_or("", JobId::as_str))
            .arg(after.map_or_else(|| "-1".to_owned(), |place| place.place.to_string()))
            .arg(limit)
            .arg(error.unwrap_or_default())
            .arg(DeadLetter::ERROR_BYTES_MAX);
        for name in DEAD_FIELDS {
            script.arg(name);
        }
        let (last, place, rows): (Vec<u8>, i64, Rows) = self.invoke(DOING, &script).await?;
        let next = u64::try_from(place).ok().map(|place| {
            let id = std::str::from_utf8(&last).ok().and_then(|last| last.parse().ok());
            DeadPlace { script_type: script_type.clone(), place, id }
        });
        let items = rows.iter().map(|row| letter(script_type, row)).collect::<Option<_>>();
        Ok((items.ok_or_else(|| StoreError::unexpected(DOING))?, next))
    }

    /// Returns true if a job is a dead letter of a type.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn is_dead(&self, script_type: &ScriptType, id: &JobId) -> Result<bool, StoreError> {
        let mut command = redis::cmd("LPOS");
        command.arg(self.keys.dead(script_type)).arg(id.as_str());
        let place: Option<u64> = self.link.query("looking for a dead letter", &command).await?;
        Ok(place.is_some())
    }
}

fn letter(script_type: &ScriptType, row: &[Vec<u8>]) -> Option<(DeadLetter, u64)> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (id, rest) = row.split_first()?;
    let (place, rest) = rest.split_first()?;
    let (error, rest) = rest.split_first()?;
    let letter = DeadLetter {
        id: std::str::from_utf8(id).ok()?.parse().ok()?,
        script_type: script_type.clone(),
        error: text(error),
        fields: DEAD_FIELDS
            .into_iter()
            .zip(rest)
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, text(value).chars().take(200).collect()))
            .collect(),
    };
    Some((letter, text(place).parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_dead_letters_reads_back_as_it_is_written() {
        let place = DeadPlace {
            script_type: "osis".parse().expect("legal"),
            place: 41,
            id: Some("a-b_c".parse().expect("legal")),
        };
        let without = DeadReach::After(DeadPlace { id: None, ..place.clone() });
        let place = DeadReach::After(place);
        for reaches in [
            vec![place.clone()],
            vec![without.clone()],
            vec![DeadReach::Begin, place, DeadReach::End, without, DeadReach::Begin],
        ] {
            let cursor = DeadCursor(reaches);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in ["", ",", "osis", "osis.x.a", "OSIS.1.a", "osis.1.a:b", "osis.-1.a"] {
            assert!(bad.parse::<DeadCursor>().is_err(), "{bad} was accepted");
        }
    }
}
