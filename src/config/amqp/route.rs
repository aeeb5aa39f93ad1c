//! `[[amqp.route]]`: who serves a message.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::nodes::BrokerName;
use crate::config::TypeConfig;
use crate::config::config_error::{Fault, KeyPath};
use crate::config::key_row::TEN_YEARS;
use crate::config::toml_table::toml_table;
use crate::config::type_of_script::names;
use crate::config::units::FileDuration;
use crate::proto::script_use::ScriptUse;
use crate::proto::selector::Selector;
use crate::proto::target::{Group, ScriptType};
use crate::proto::word_table::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckMode {
    /// Once its job is stored in Redis.
    #[default]
    Handoff,
    /// Once its job has ended.
    End,
}

words! {
    /// A part of Hero that answers messages without a job.
    #[derive(Deserialize)]
    BuiltInName;
    /// Answers with its time.
    Ping = "ping",
    /// The objects of `osis` scripts.
    Objects = "objects",
    /// The collection of log events.
    Logger = "logger",
    /// The journal of this machine.
    Journal = "journal",
    /// The tables of a relational database.
    Relational = "relational",
    /// The events that jobs wait for.
    Tell = "tell",
}

toml_table! {
    /// The routes of messages: who serves which. The first route that takes a message wins; without one, the key
    /// decides. A route has a type with a script or a script_file, uses, or a builtin.
    ///
    ///     amqp.route = [
    ///         { key = "rec.*", operation = "write", template = "bill", type = "python", group = "io", script_file = "/etc/hero/bill.py", timeout = "10s", ack = "end" },
    ///         { key = "adm", type = "osis", script = "INPUTS.message" },
    ///         { key = "adm", operation = "deploy", uses = "deploy@3" },
    ///         { key = "log", broker = "adminGraphBroker", builtin = "journal" },
    ///     ]
    pub struct RouteConfig in "amqp.route", list {
        /// The pattern of the routing key: `*` is one word, `#` any number of words. `#` by default.
        key: String = "#".to_owned() => Text;
        /// The operation and the template that the message must have; empty for any.
        #[serde(skip_serializing_if = "String::is_empty")]
        operation: String = String::new() => Text;
        #[serde(skip_serializing_if = "String::is_empty")]
        template: String = String::new() => Text;
        /// The broker of the matrix that the route is for; any without one.
        broker: Option<BrokerName> = None
            => OneOf(&[
                "adminBrokerIn", "adminBrokerOut", "adminGraphBroker", "adminLogsBroker", "adminSyslogBroker", "cBroker",
                "mBroker", "rBroker", "sBroker", "uBroker", "wBroker", "whBroker",
            ]);
        /// The part of Hero that answers, in place of a job.
        built_in named "builtin": Option<BuiltInName> = None
            => OneOf(&["ping", "objects", "logger", "journal", "relational", "tell"]);
        /// The script type, group and timeout of the job, and an expression over labels of actors in place of a group.
        script_type named "type": Option<ScriptType> = None => Text;
        group: Option<Group> = None => Text;
        selector named "where": Option<Selector> = None => Text;
        timeout: Option<FileDuration> = None => Duration(0, TEN_YEARS);
        /// The text of the script, or its file. The message is its input `message`.
        #[serde(skip_serializing_if = "String::is_empty")]
        script: String = String::new() => Text;
        script_file: Option<PathBuf> = None => File;
        /// The published script of the job, in place of its type and script: `NAME@3`, or `NAME` for its latest version. The data of a
        /// message are the parameters, checked as the script declares them.
        uses: Option<ScriptUse> = None => Text;
        /// `handoff`, by default: a message is acknowledged once its job is stored. `end`: once it has ended; `timeout`
        /// must be below `consumer_timeout`.
        ack: AckMode = AckMode::Handoff => OneOf(&["handoff", "end"]);
    }
}

impl RouteConfig {
    /// Rejects a route that serves nothing, or that cannot be followed.
    pub(super) fn check(
        &self,
        table: &KeyPath,
        types: &BTreeMap<ScriptType, TypeConfig>,
    ) -> Result<(), Fault> {
        if !is_pattern(&self.key) {
            let message = "must be words joined by dots, such as \"rec.*\"; * stands for one word, \
                           # for any number";
            return table.wrong("key", message);
        }
        if self.selector.is_some() && self.group.is_some() {
            let message = "cannot be set beside group: add `group = \"NAME\"` to the expression";
            return table.wrong("where", message);
        }
        let scripts =
            usize::from(!self.script.is_empty()) + usize::from(self.script_file.is_some());
        if self.uses.is_some() {
            let beside = [
                ("type", self.script_type.is_some()),
                ("builtin", self.built_in.is_some()),
                ("script", scripts > 0),
            ];
            let beside = beside.iter().find(|(_, is_set)| *is_set);
            return beside.map_or(Ok(()), |(key, _)| {
                table.wrong(key, "cannot be set beside uses, which names a published script")
            });
        }
        match (&self.script_type, self.built_in) {
            (None, None) => table.wrong("type", "needs a type with a script, uses, or a builtin"),
            (Some(_), Some(_)) => table.wrong("builtin", "cannot be set beside a type"),
            (None, Some(_)) if scripts > 0 => {
                table.wrong("script", "cannot be set beside a builtin")
            }
            (Some(of_type), None) if !types.contains_key(of_type) => {
                table.wrong("type", format!("must be a configured script type: {}", names(types)))
            }
            (Some(_), None) if scripts != 1 => {
                table.wrong("script", "needs either a script or a script_file")
            }
            (None, Some(_)) | (Some(_), None) => Ok(()),
        }
    }
}

/// Returns true for words joined by dots, each of them `*`, `#` or without both.
pub(super) fn is_pattern(text: &str) -> bool {
    let is_word =
        |word: &str| matches!(word, "*" | "#") || (!word.is_empty() && !word.contains(['*', '#']));
    text.len() <= 255 && !text.is_empty() && text.split('.').all(is_word)
}
