//! `hero osis …`: lists, exports, imports and deletes the objects that scripts store.

mod transfer;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::NoResults;
use super::input::{bad, parsed, quoted};
use super::table::{TextTable, begin};
use super::{Global, output};
use crate::client::Client;
use crate::config::OsisConfig;
use crate::error::{Error, Exit};
use crate::proto::object::{
    Answer, Ask, Change, Context, Object, ObjectId, ObjectType, Query, Write, time_text,
};
use crate::rpc::results::TypeCount;

const CONTEXTS: usize = 1000;

/// List, export, import and delete the objects that osis scripts store
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero osis list\n  \
                        hero osis list person --find 'age > 30 order by name'\n  \
                        hero osis export > objects.jsonl")]
pub(super) enum OsisCommand {
    List(ObjectList),
    /// Print one object as JSON
    #[command(after_help = "Example:\n  hero osis get person ann --context work")]
    Get {
        /// The type of the object
        #[arg(value_name = "TYPE")]
        object_type: String,
        /// The object
        id: String,
        #[command(flatten)]
        of: InContext,
    },
    /// Delete objects
    #[command(after_help = "Example:\n  hero osis delete person ann bob --context work")]
    Delete {
        /// The type of the objects
        #[arg(value_name = "TYPE")]
        object_type: String,
        /// The objects
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        of: InContext,
    },
    Export(transfer::Export),
    Import(transfer::Import),
    /// Build incomplete declared indexes, and remove undeclared ones
    #[command(after_help = "Example:\n  hero osis reindex")]
    Reindex {
        /// Only in this context; by default in all
        #[arg(long, value_name = "NAME")]
        context: Option<String>,
    },
}

/// The context of the objects.
#[derive(Debug, Args)]
pub(super) struct InContext {
    /// The context of the objects; by default the empty one
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    context: String,
}

/// List contexts and types with their object counts, or the objects of one type
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero osis list\n  hero osis list person --context work\n  \
                        hero osis list person --find 'age > 30 order by name' --json\n\n\
                        The command for the next page, if there is one, is on standard error.")]
pub(super) struct ObjectList {
    /// The type of the objects; without it, all contexts and types are listed
    #[arg(value_name = "TYPE")]
    object_type: Option<String>,
    /// The context; by default the empty one for a type, else all
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Only the objects that match this query
    #[arg(long, value_name = "QUERY", requires = "object_type", conflicts_with = "after")]
    find: Option<String>,
    /// Only the objects after this one
    #[arg(long, value_name = "ID", requires = "object_type")]
    after: Option<String>,
    /// The page size, up to 1000
    #[arg(long, default_value_t = 50, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl OsisCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let (client, config) = (global.client()?, &global.config()?.osis);
        match self {
            Self::List(list) => list.run(&client, config, global).await?,
            Self::Get { object_type, id, of } => {
                let params = json!({ "type": object_type, "id": id, "context": of.context });
                output::json(&global.methods()?.call("object.get", params).await?)?;
            }
            Self::Delete { object_type, ids, of } => {
                return delete(&client, global, (&object_type, &ids, &of.context)).await;
            }
            Self::Export(export) => export.run(&client).await?,
            Self::Import(import) => import.run(&client, global).await?,
            Self::Reindex { context } => reindex(&client, context.as_deref(), global).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ObjectList {
    async fn run(
        &self,
        client: &Client,
        config: &OsisConfig,
        global: &Global,
    ) -> Result<(), Error> {
        let Some(object_type) = &self.object_type else { return self.counts(client, global).await };
        let object_type: ObjectType = parsed(object_type)?;
        let context: Context = parsed(self.context.as_deref().unwrap_or_default())?;
        let limit: usize = self.limit.into();
        let (objects, next) = if let Some(query) = &self.find {
            let query = Query::parse(query).map_err(bad)?;
            let ask = Ask::Find { object_type: object_type.clone(), query, after: None, limit };
            match client.objects().list(&context, ask, config).await? {
                Answer::Objects(objects) => (objects, None),
                _ => (Vec::new(), None),
            }
        } else {
            let after = self.after.as_deref().map(parsed::<ObjectId>).transpose()?;
            client.objects().page(&context, &object_type, after.as_ref(), limit).await?
        };
        let next = next.map(|id| id.to_string());
        let document = || {
            let objects: Vec<_> = objects.iter().map(Object::document).collect();
            json!({ "objects": objects, "next": next })
        };
        let none = NoResults::new("object")
            .by("of type", Some(&object_type))
            .by("in context", self.context.as_ref())
            .by("that fits", self.find.as_ref().map(|query| format!("`{query}`")))
            .by("after", self.after.as_ref());
        global.list(document, || table(&objects), none)?;
        let context = self.context.as_deref().map(|name| format!(" --context {}", quoted(name)));
        let context = context.unwrap_or_default();
        let page = format!("hero osis list {object_type}{context} --limit {limit}");
        global.more(next.map(|next| format!("{page} --after {}", quoted(&next))));
        Ok(())
    }

    async fn counts(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let counts = types(client, self.context.as_deref()).await?.into_iter();
        let count = |(context, of, objects): (Context, ObjectType, u64)| TypeCount {
            context: context.text(),
            object_type: of.to_string(),
            objects,
        };
        let counts: Vec<TypeCount> = counts.map(count).collect();
        let table = || {
            TextTable::of(&counts)
                .column("~CONTEXT", &|of| of.context.clone())
                .column("!TYPE", &|of| of.object_type.clone())
                .column(">OBJECTS", &|of| of.objects.to_string())
        };
        let none = NoResults::new("object").by("in context", self.context.as_ref());
        global.list(|| json!({ "types": counts }), table, none)
    }
}

/// Returns the types of the named context or of all, each with its context and the number of its objects.
async fn types(
    client: &Client,
    named: Option<&str>,
) -> Result<Vec<(Context, ObjectType, u64)>, Error> {
    let mut contexts: Vec<Context> = named.map(parsed).transpose()?.into_iter().collect();
    while named.is_none() {
        let page = client.objects().contexts(contexts.last(), CONTEXTS).await?;
        if page.is_empty() {
            break;
        }
        contexts.extend(page);
    }
    let mut types = Vec::new();
    for context in contexts {
        let counts = client.objects().counts(&context).await?.into_iter();
        types.extend(counts.map(|(of, number)| (context.clone(), of, number)));
    }
    Ok(types)
}

async fn delete(
    client: &Client,
    global: &Global,
    (object_type, ids, context): (&str, &[String], &str),
) -> Result<ExitCode, Error> {
    let (object_type, context): (ObjectType, Context) = (parsed(object_type)?, parsed(context)?);
    let write = |id: &String| {
        let (object_type, id) = (object_type.clone(), parsed(id)?);
        Ok(Write { object_type, id, expected: None, change: Change::Delete })
    };
    let writes: Vec<Write> = ids.iter().map(write).collect::<Result<_, Error>>()?;
    let written = client.objects().change(&context, writes, &global.config()?.osis).await?;
    let deleted: Vec<bool> = written.iter().map(|written| written.existed).collect();
    let mut exit = Exit::Ok;
    for (id, _) in ids.iter().zip(&deleted).filter(|(_, existed)| !**existed) {
        output::note(&format!("hero: no such object: {object_type} {}", id.escape_debug()));
        exit = Exit::NotFound;
    }
    let count = deleted.iter().filter(|existed| **existed).count();
    global.print(|| json!({ "deleted": count }), || format!("{count} deleted\n"))?;
    Ok(exit.into())
}

/// The indexes of a type that were made or removed.
#[derive(Serialize)]
struct ChangedIndexes {
    context: String,
    #[serde(rename = "type")]
    object_type: ObjectType,
    built: Vec<String>,
    removed: Vec<String>,
}

async fn reindex(client: &Client, context: Option<&str>, global: &Global) -> Result<(), Error> {
    let config = &global.config()?.osis;
    let mut changed = Vec::new();
    for (context, object_type, _) in types(client, context).await? {
        let done = client.objects().reindex(&context, &object_type, config).await?;
        let [built, removed] = [done.built, done.removed]
            .map(|fields| fields.iter().map(ToString::to_string).collect::<Vec<_>>());
        if !built.is_empty() || !removed.is_empty() {
            let context = context.text();
            changed.push(ChangedIndexes { context, object_type, built, removed });
        }
    }
    let table = || {
        TextTable::of(&changed)
            .column("~CONTEXT", &|of| of.context.clone())
            .column("TYPE", &|of| of.object_type.to_string())
            .column("!BUILT", &|of| of.built.join(" "))
            .column("~REMOVED", &|of| of.removed.join(" "))
    };
    global.print(|| json!({ "indexes": changed }), || table().show(global.look()))?;
    if changed.is_empty() && !global.json {
        output::note("hero: no index had to be built or removed");
    }
    Ok(())
}

fn table(objects: &[Object]) -> TextTable<'_, Object> {
    const SHOWN_CHARS: usize = 100;
    let body = |of: &Object| Value::Object(of.body.clone()).to_string();
    TextTable::of(objects)
        .column("ID", &|of| of.id.to_string())
        .column(">VERSION", &|of| of.version.to_string())
        .column("MODIFIED", &|of| time_text(of.modified_ms))
        .column("!OBJECT", &|of| begin(&body(of), SHOWN_CHARS))
}
