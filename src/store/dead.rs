//! Dead letters: jobs that used up their attempts, or took down too many actors.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::listing::{illegal_cursor, write_fields};
use super::{Store, StoreError};
use crate::proto::job::JobId;
use crate::proto::target::{IllegalName, ScriptType};

/// A filter of dead letters.
#[derive(Debug, Clone, Default)]
pub struct DeadFilter {
    /// Only those of this type.
    pub script_type: Option<ScriptType>,
    /// Only those whose error contains this text.
    pub error: Option<String>,
}

/// The end of a page of dead letters: the type, the place in its list, and the id there, if it is
/// still a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCursor {
    script_type: ScriptType,
    place: u64,
    id: Option<JobId>,
}

impl fmt::Display for DeadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_ref().map_or("", JobId::as_str);
        write!(f, "{}.{}.{id}", self.script_type, self.place)
    }
}

impl FromStr for DeadCursor {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let illegal = || illegal_cursor(value);
        let mut parts = value.splitn(3, '.');
        let mut part = || parts.next().ok_or_else(illegal);
        Ok(Self {
            script_type: part()?.parse().map_err(|_| illegal())?,
            place: part()?.parse().map_err(|_| illegal())?,
            id: match part()? {
                "" => None,
                id => Some(id.parse().map_err(|_| illegal())?),
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
pub(crate) const DEAD_FIELDS: [&str; 11] = [
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

impl Store {
    /// The largest page of dead letters.
    pub const DEAD_PAGE_MAX: usize = 500;

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
        let types = match &filter.script_type {
            Some(only) => vec![only.clone()],
            None => self.types().await?,
        };
        let from = after.map(|cursor| &cursor.script_type);
        let limit = limit.clamp(1, Self::DEAD_PAGE_MAX);
        let mut items = Vec::new();
        for script_type in types.into_iter().filter(|t| from.is_none_or(|from| t >= from)) {
            let mut after = after.filter(|cursor| cursor.script_type == script_type).cloned();
            loop {
                let left = limit - items.len();
                let error = filter.error.as_deref();
                let page = self.dead_of(&script_type, error, left, after.as_ref()).await?;
                items.extend(page.items);
                if items.len() >= limit {
                    // After a full page at the end of a list, the next type follows.
                    let next = page.next.or_else(|| {
                        let last = items.last()?;
                        let (id, script_type) = (last.id.clone(), last.script_type.clone());
                        Some(DeadCursor { script_type, place: 0, id: Some(id) })
                    });
                    return Ok(DeadPage { items, next });
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(DeadPage { items, next: None })
    }

    /// One step through the dead letters of a type.
    async fn dead_of(
        &self,
        script_type: &ScriptType,
        error: Option<&str>,
        limit: usize,
        after: Option<&DeadCursor>,
    ) -> Result<DeadPage, StoreError> {
        const DOING: &str = "listing dead letters";
        let mut script = self.scripts.list_dead.prepare_invoke();
        script
            .arg(script_type.as_str())
            .arg(after.and_then(|cursor| cursor.id.as_ref()).map_or("", JobId::as_str))
            .arg(after.map_or_else(|| "-1".to_owned(), |cursor| cursor.place.to_string()))
            .arg(limit)
            .arg(error.unwrap_or_default())
            .arg(DeadLetter::ERROR_BYTES_MAX);
        for name in DEAD_FIELDS {
            script.arg(name);
        }
        let (last, place, rows): (Vec<u8>, i64, Rows) = self.invoke(DOING, &script).await?;
        let next = u64::try_from(place).ok().map(|place| {
            let id = std::str::from_utf8(&last).ok().and_then(|last| last.parse().ok());
            DeadCursor { script_type: script_type.clone(), place, id }
        });
        let items = rows.iter().map(|row| letter(script_type, row)).collect::<Option<_>>();
        Ok(DeadPage { items: items.ok_or_else(|| StoreError::unexpected(DOING))?, next })
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

fn letter(script_type: &ScriptType, row: &[Vec<u8>]) -> Option<DeadLetter> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (id, rest) = row.split_first()?;
    let (error, rest) = rest.split_first()?;
    Some(DeadLetter {
        id: std::str::from_utf8(id).ok()?.parse().ok()?,
        script_type: script_type.clone(),
        error: text(error),
        fields: DEAD_FIELDS
            .into_iter()
            .zip(rest)
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, text(value).chars().take(200).collect()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_dead_letters_reads_back_as_it_is_written() {
        let cursor = DeadCursor {
            script_type: "osis".parse().expect("legal"),
            place: 41,
            id: Some("a-b_c".parse().expect("legal")),
        };
        let without = DeadCursor { id: None, ..cursor.clone() };
        for cursor in [cursor, without] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in ["", "osis", "osis.x.a", "OSIS.1.a", "osis.1.a:b", "osis.-1.a"] {
            assert!(bad.parse::<DeadCursor>().is_err(), "{bad} was accepted");
        }
    }
}
