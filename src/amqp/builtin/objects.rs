//! Serves `rec.*` by the objects that scripts of the engine `osis` store: the template is the type.

use serde_json::{Map, Value, json};

use crate::amqp::message::{AmqpMessage, MessageFailure, short_hash};
use crate::client::{Client, ClientError};
use crate::config::OsisConfig;
use crate::proto::object::{
    Answer, Ask, Change, Context, OWN_FIELDS, Object, ObjectError, ObjectId, ObjectType, Query,
    Write, WriteMark, Written,
};
use crate::proto::text::shown;
use crate::store::is_about_login;

/// The objects of a page unless the message says how many, and its limit.
const PAGE: usize = 50;
const PAGE_MAX: usize = 1000;
/// The maximum number of changes of one message.
const BULK_MAX: usize = 1000;
/// The attempts to change an object that others change too.
const UPDATES_MAX: usize = 5;

/// The routing keys, and the operations that each serves.
const OPERATIONS: [(&str, &[&str]); 3] = [
    ("rec.read", &["fetch", "read"]),
    ("rec.write", &["write", "update", "delete"]),
    ("rec.obj", &["bulk"]),
];

#[derive(Clone)]
pub(super) struct RecObjects {
    client: Client,
    osis: OsisConfig,
    context: Context,
    /// The tag and the vhost.
    scope: String,
}

impl RecObjects {
    pub(super) fn new(client: Client, osis: OsisConfig, context: &str, scope: String) -> Self {
        // The configuration was checked.
        Self { client, osis, context: context.parse().unwrap_or_default(), scope }
    }

    pub(super) async fn serve(&self, message: &AmqpMessage) -> Result<Value, MessageFailure> {
        let object_type = || {
            let template = &message.template;
            template.parse::<ObjectType>().map_err(|error| {
                MessageFailure::lasting("unknown_template", format!("the template: {error}"))
            })
        };
        message.check_operation(&OPERATIONS)?;
        match message.operation.as_str() {
            "read" | "fetch" => self.fetch(object_type()?, &message.data).await,
            "write" => self.write(object_type()?, message).await,
            "update" => self.update(object_type()?, message).await,
            "delete" => self.delete(object_type()?, message).await,
            "bulk" => self.bulk(object_type()?, message).await,
            other => Err(MessageFailure::lasting(
                "unknown_operation",
                format!(
                    "no such operation: `{}`; there are fetch, write, update, delete and bulk",
                    shown(other)
                ),
            )),
        }
    }

    /// `{"id"}` for one object, `{"query"}` for those that match, `{"after", "limit"}` for a page.
    async fn fetch(&self, object_type: ObjectType, data: &Value) -> Result<Value, MessageFailure> {
        if data.get("id").is_some() {
            let id = named(data, "id")?;
            let found = self.get(&object_type, &id).await?;
            return found
                .map(|object| Value::Object(object.document()))
                .ok_or_else(|| not_found(&object_type, &id));
        }
        let limit = match data.get("limit") {
            None => PAGE,
            Some(limit) => limit
                .as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| (1..=PAGE_MAX).contains(limit))
                .ok_or_else(|| {
                    MessageFailure::invalid(format!("limit must be a number from 1 to {PAGE_MAX}"))
                })?,
        };
        let documents = |objects: &[Object]| -> Vec<Value> {
            objects.iter().map(|object| Value::Object(object.document())).collect()
        };
        if let Some(query) = data.get("query") {
            let text =
                query.as_str().ok_or_else(|| MessageFailure::invalid("query must be text"))?;
            let query = Query::parse(text)
                .map_err(|error| MessageFailure::invalid(format!("the query: {error}")))?;
            let ask = Ask::Find { object_type, query, after: None, limit };
            let Answer::Objects(found) = self.ask(ask).await? else { return Ok(json!([])) };
            return Ok(json!({ "objects": documents(&found) }));
        }
        let after = data.get("after").map(|_| named(data, "after")).transpose()?;
        let page = self.client.objects().page(&self.context, &object_type, after.as_ref(), limit);
        let (objects, next) = page.await.map_err(|error| failure(&error))?;
        let next = next.map(|id| id.to_string());
        Ok(json!({ "objects": documents(&objects), "next": next }))
    }

    /// The fields of an object; its `id` if it has one, else one by the id of the message, so that a
    /// second delivery writes the same object.
    async fn write(
        &self,
        object_type: ObjectType,
        message: &AmqpMessage,
    ) -> Result<Value, MessageFailure> {
        let write = Self::set(object_type, &message.data, message, 0)?;
        let id = write.id.clone();
        Ok(result_of(&id, &self.change(vec![write], message).await?))
    }

    /// Changes fields of an object and leaves the others.
    async fn update(
        &self,
        object_type: ObjectType,
        message: &AmqpMessage,
    ) -> Result<Value, MessageFailure> {
        let data = &message.data;
        let id = named(data, "id")?;
        let fields = fields_of(data)?;
        // The object may be another one since, or gone.
        if let Some(mark) = self.mark(message)
            && let Answer::Written(written) = self.ask(Ask::Applied(mark)).await?
            && !written.is_empty()
        {
            return Ok(result_of(&id, &written));
        }
        let mut changed = Err(not_found(&object_type, &id));
        for _ in 0..UPDATES_MAX {
            let found = self.get(&object_type, &id).await?;
            let object = found.ok_or_else(|| not_found(&object_type, &id))?;
            let mut body = object.body;
            body.extend(fields.clone());
            let change = Change::Set { body, created_ms: None };
            let expected = Some(expected_of(data)?.unwrap_or(object.version));
            let write =
                Write { object_type: object_type.clone(), id: id.clone(), expected, change };
            let ask = self.once(vec![write], message);
            match self.client.objects().list(&self.context, ask, &self.osis).await {
                Ok(Answer::Written(written)) => return Ok(result_of(&id, &written)),
                Ok(_) => return Ok(Value::Null),
                Err(error) => {
                    let is_stale = matches!(&error, ClientError::Object(ObjectError::Stale { .. }));
                    changed = Err(failure(&error));
                    if !is_stale || expected_of(data)?.is_some() {
                        break;
                    }
                }
            }
        }
        changed
    }

    async fn delete(
        &self,
        object_type: ObjectType,
        message: &AmqpMessage,
    ) -> Result<Value, MessageFailure> {
        let (id, expected) = (named(&message.data, "id")?, expected_of(&message.data)?);
        let write = Write { object_type, id, expected, change: Change::Delete };
        let written = self.change(vec![write], message).await?;
        Ok(json!({ "deleted": written.first().is_some_and(|written| written.existed) }))
    }

    /// `{"write": [objects], "delete": [ids]}`: all of them, or none.
    async fn bulk(
        &self,
        object_type: ObjectType,
        message: &AmqpMessage,
    ) -> Result<Value, MessageFailure> {
        let list = |name: &str| match message.data.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(entries)) => Ok(entries.clone()),
            Some(_) => Err(MessageFailure::invalid(format!("{name} must be a list"))),
        };
        let (written, deleted) = (list("write")?, list("delete")?);
        let number = written.len() + deleted.len();
        if !(1..=BULK_MAX).contains(&number) {
            let reason = format!("write and delete must have from 1 to {BULK_MAX} entries");
            return Err(MessageFailure::invalid(reason));
        }
        let mut writes = Vec::with_capacity(number);
        for (place, object) in written.iter().enumerate() {
            writes.push(Self::set(object_type.clone(), object, message, place)?);
        }
        for id in &deleted {
            let id = named(&json!({ "id": id }), "id")?;
            let change = Change::Delete;
            writes.push(Write { object_type: object_type.clone(), id, expected: None, change });
        }
        let ids: Vec<String> = writes.iter().map(|write| write.id.to_string()).collect();
        self.change(writes, message).await?;
        Ok(json!({ "ids": ids }))
    }

    async fn change(
        &self,
        writes: Vec<Write>,
        message: &AmqpMessage,
    ) -> Result<Vec<Written>, MessageFailure> {
        match self.ask(self.once(writes, message)).await? {
            Answer::Written(written) => Ok(written),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the request for the changes of a message, which are made once if it has an id.
    fn once(&self, writes: Vec<Write>, message: &AmqpMessage) -> Ask {
        match self.mark(message) {
            Some(mark) => Ask::WriteOnce(writes, mark),
            None => Ask::Write(writes),
        }
    }

    /// Returns the mark of a message; `None` if it has no id.
    fn mark(&self, message: &AmqpMessage) -> Option<WriteMark> {
        let id = message.message_id.as_deref()?;
        let name = short_hash(&format!("{}\0{}\0{id}", self.scope, message.queue));
        Some(WriteMark { name, digest: message.digest() })
    }

    fn set(
        object_type: ObjectType,
        data: &Value,
        message: &AmqpMessage,
        place: usize,
    ) -> Result<Write, MessageFailure> {
        let body = fields_of(data)?;
        let id = match (data.get("id"), &message.message_id) {
            (Some(_), _) => named(data, "id")?,
            (None, Some(message_id)) => {
                let text = format!("{}\0{message_id}\0{place}", message.queue);
                legal(&short_hash(&text))?
            }
            (None, None) => legal(&uuid::Uuid::new_v4().to_string())?,
        };
        let expected = expected_of(data)?;
        Ok(Write { object_type, id, expected, change: Change::Set { body, created_ms: None } })
    }

    async fn get(
        &self,
        object_type: &ObjectType,
        id: &ObjectId,
    ) -> Result<Option<Object>, MessageFailure> {
        match self.ask(Ask::Get(object_type.clone(), id.clone())).await? {
            Answer::Object(object) => Ok(object),
            _ => Ok(None),
        }
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, MessageFailure> {
        let asked = self.client.objects().list(&self.context, ask, &self.osis).await;
        asked.map_err(|error| failure(&error))
    }
}

fn result_of(id: &ObjectId, written: &[Written]) -> Value {
    let version = written.first().map_or(0, |written| written.version);
    json!({ "id": id.as_str(), "version": version })
}

fn named(data: &Value, name: &str) -> Result<ObjectId, MessageFailure> {
    match data.get(name) {
        Some(Value::String(text)) => legal(text),
        Some(Value::Number(number)) => legal(&number.to_string()),
        _ => Err(MessageFailure::invalid(format!("data needs {name}, the id of an object"))),
    }
}

fn legal(text: &str) -> Result<ObjectId, MessageFailure> {
    text.parse().map_err(|error| MessageFailure::invalid(format!("{error}")))
}

/// The version that an object must have, 0 if it must not exist.
fn expected_of(data: &Value) -> Result<Option<u64>, MessageFailure> {
    match data.get("version") {
        None | Some(Value::Null) => Ok(None),
        Some(version) => version
            .as_u64()
            .map(Some)
            .ok_or_else(|| MessageFailure::invalid("version must be a whole number, 0 or more")),
    }
}

/// The fields of an object without those that the store sets.
fn fields_of(data: &Value) -> Result<Map<String, Value>, MessageFailure> {
    let fields = data
        .as_object()
        .ok_or_else(|| MessageFailure::invalid("data must be an object with fields"))?;
    let own = |name: &str| OWN_FIELDS.contains(&name);
    Ok(fields.iter().filter(|(name, _)| !own(name)).map(|(n, v)| (n.clone(), v.clone())).collect())
}

fn not_found(object_type: &ObjectType, id: &ObjectId) -> MessageFailure {
    let id = id.as_str().escape_debug();
    MessageFailure::lasting("not_found", format!("no such object: {object_type} {id}"))
}

fn failure(error: &ClientError) -> MessageFailure {
    let text = error.to_string();
    match error {
        ClientError::Object(ObjectError::Stale { .. }) => MessageFailure::lasting("stale", text),
        ClientError::Object(ObjectError::OtherMessage) => {
            MessageFailure::lasting("id_reused", text)
        }
        ClientError::Object(
            ObjectError::Unavailable(_) | ObjectError::Building { .. } | ObjectError::Full { .. },
        ) => MessageFailure::passing("unavailable", text),
        // Redis refuses the login, which mostly passes: the message waits.
        ClientError::Object(ObjectError::NotPermitted(reason)) if is_about_login(reason) => {
            MessageFailure::passing("unavailable", text)
        }
        ClientError::Object(ObjectError::NotPermitted(_)) => {
            MessageFailure::lasting("not_permitted", text)
        }
        ClientError::Object(_) => MessageFailure::lasting("invalid_data", text),
        _ => MessageFailure::passing("unavailable", text),
    }
}
