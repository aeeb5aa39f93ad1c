//! `hero osis export` and `hero osis import`: writes and reads objects as lines of JSON.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{InContext, types};
use crate::cli::input::{bad, open, parsed};
use crate::cli::{Global, output};
use crate::client::Client;
use crate::error::Error;
use crate::proto::object::{Context, ObjectId, ObjectType, Write};

const PAGE: usize = 500;
/// The limits of one write: changes, and bytes of lines.
const CHANGES: usize = 200;
const BYTES: usize = 8 << 20;

/// Print objects as lines of JSON for `hero osis import`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero osis export > all.jsonl\n  \
                        hero osis export person --context work > people.jsonl\n\n\
                        An object that changes meanwhile is printed in its old or its new state.")]
pub(in crate::cli) struct Export {
    /// Only objects of this type
    #[arg(value_name = "TYPE")]
    object_type: Option<String>,
    /// Only the objects of this context; by default of all
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Store objects from lines of JSON; each replaces an object with its id
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero osis import objects.jsonl\n\n\
                        A line is {\"context\": NAME, \"type\": TYPE, \"object\": {\"id\": ID, …}}; \
                        without a context it is in the context of --context. Objects before an invalid \
                        line are kept.")]
pub(in crate::cli) struct Import {
    /// The file; `-` or no file reads standard input
    file: Option<PathBuf>,
    #[command(flatten)]
    of: InContext,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectLine {
    context: Option<String>,
    #[serde(rename = "type")]
    object_type: ObjectType,
    object: Map<String, Value>,
}

impl Export {
    pub(super) async fn run(&self, client: &Client) -> Result<(), Error> {
        let only: Option<ObjectType> = self.object_type.as_deref().map(parsed).transpose()?;
        for (context, object_type, _) in types(client, self.context.as_deref()).await? {
            if only.as_ref().is_none_or(|only| *only == object_type) {
                export(client, &context, &object_type).await?;
            }
        }
        Ok(())
    }
}

async fn export(client: &Client, context: &Context, of: &ObjectType) -> Result<(), Error> {
    let mut after: Option<ObjectId> = None;
    loop {
        let (objects, next) = client.objects().page(context, of, after.as_ref(), PAGE).await?;
        for object in objects {
            let (context, object) = (context.text(), object.document());
            output::json(&json!({ "context": context, "type": of, "object": object }))?;
        }
        after = next;
        if after.is_none() {
            return Ok(());
        }
    }
}

impl Import {
    pub(super) async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let config = &global.config()?.osis;
        let mut lines = open(self.file.as_deref().unwrap_or(Path::new("-")))?;
        // JSON escapes can make a string six times as long, and the line has more than the object.
        let line_max = config.object_size_max.saturating_mul(6) + 4096;
        let (mut number, mut imported) = (0, 0);
        let mut batch: Vec<Write> = Vec::new();
        let (mut bytes, mut batch_context) = (0, parsed::<Context>(&self.of.context)?);
        loop {
            let mut line = String::new();
            number += 1;
            let wrong = |why: String| bad(format!("cannot import line {number}: {why}"));
            let read = lines.by_ref().take(line_max + 1).read_line(&mut line);
            let read = read.map_err(|error| wrong(error.to_string()))?;
            if read as u64 > line_max {
                return Err(wrong(format!("it is longer than the limit of {line_max} bytes")));
            }
            if read > 0 && line.trim().is_empty() {
                continue;
            }
            let next = match read {
                0 => None,
                _ => Some(self.read(&line).map_err(wrong)?),
            };
            let goes_on = next.as_ref().is_some_and(|(context, _)| {
                *context == batch_context && batch.len() < CHANGES && bytes < BYTES
            });
            if !goes_on && !batch.is_empty() {
                imported += batch.len();
                client.objects().change(&batch_context, std::mem::take(&mut batch), config).await?;
                bytes = 0;
            }
            let Some((context, write)) = next else { break };
            batch_context = context;
            bytes += read;
            batch.push(write);
        }
        global.print(|| json!({ "imported": imported }), || format!("{imported} imported\n"))
    }

    fn read(&self, line: &str) -> Result<(Context, Write), String> {
        let ObjectLine { context, object_type, object } =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let context = context.as_deref().unwrap_or(&self.of.context);
        let context = context.parse().map_err(|error| format!("{error}"))?;
        Ok((context, Write::of_document(object_type, object)?))
    }
}
