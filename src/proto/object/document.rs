//! Objects as JSON maps that include the store's own fields, for operators to view, save and
//! restore.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Change, OWN_FIELDS, Object, ObjectId, ObjectType, Write};

impl Object {
    /// Returns all its fields in one map. Times are RFC 3339, UTC, with milliseconds.
    pub fn document(&self) -> Map<String, Value> {
        let mut map = self.body.clone();
        map.insert("id".to_owned(), self.id.as_str().into());
        map.insert("version".to_owned(), self.version.into());
        map.insert("created_at".to_owned(), time_text(self.created_ms).into());
        map.insert("modified_at".to_owned(), time_text(self.modified_ms).into());
        map
    }
}

impl Write {
    /// Returns the write that stores a document over any version. It keeps the time of
    /// creation; the store sets version and time of change.
    pub fn of_document(
        object_type: ObjectType,
        document: Map<String, Value>,
    ) -> Result<Self, String> {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        let id: ObjectId = text("id")
            .ok_or("its id is not text")?
            .parse()
            .map_err(|error: crate::proto::target::IllegalName| error.to_string())?;
        let created_ms = match text("created_at") {
            None => None,
            Some(time) => Some(time_ms(time).ok_or("its created_at is not a time")?),
        };
        let own = |name: &String| OWN_FIELDS.contains(&name.as_str());
        let body = document.into_iter().filter(|(name, _)| !own(name)).collect();
        Ok(Self { object_type, id, expected: None, change: Change::Set { body, created_ms } })
    }
}

/// Returns a time as objects show it: RFC 3339, UTC, with milliseconds.
pub fn time_text(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// Returns the milliseconds of a time in RFC 3339.
pub fn time_ms(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_restores_its_object() {
        let body = json!({ "name": "Ann", "tags": [1, 1.5] });
        let body = body.as_object().expect("a map").clone();
        let id: ObjectId = "ann".parse().expect("legal");
        let object =
            Object { id: id.clone(), version: 7, created_ms: 1000, modified_ms: 2000, body };
        let document = object.document();
        assert_eq!(document["created_at"], "1970-01-01T00:00:01.000Z");
        let person: ObjectType = "person".parse().expect("legal");
        let write = Write::of_document(person.clone(), document).expect("legal");
        let change = Change::Set { body: object.body, created_ms: Some(1000) };
        assert_eq!(write, Write { object_type: person, id, expected: None, change });
    }

    #[test]
    fn a_document_without_a_legal_id_is_rejected() {
        for document in [json!({}), json!({ "id": 1 }), json!({ "id": "a", "created_at": "soon" })]
        {
            let document = document.as_object().expect("a map").clone();
            assert!(Write::of_document("x".parse().expect("legal"), document).is_err());
        }
    }
}
