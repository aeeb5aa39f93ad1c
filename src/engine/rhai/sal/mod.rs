//! The system for scripts: one file per group of functions. A function that fails throws an error
//! that names the operation and its object, as `file_read /x: no such file or directory`.

mod access;
mod copying;
mod download;
mod env;
mod exec;
mod files;
mod finding;
mod git;
mod guest;
mod http;
mod job;
mod json;
mod packages;
mod process;
mod processes;
mod program;
mod removing;
mod replacer;
mod ssh;
mod systemd;
mod tcp;
mod template;
mod text;
mod time;

use super::functions::Functions;

pub(super) use access::Settings;
pub(super) use process::is_command;

/// Adds all of them to an interpreter.
pub(super) fn register(functions: &mut Functions<'_>) {
    process::register(functions);
    processes::register(functions);
    files::register(functions);
    copying::register(functions);
    finding::register(functions);
    env::register(functions);
    download::register(functions);
    packages::register(functions);
    text::register(functions);
    replacer::register(functions);
    template::register(functions);
    tcp::register(functions);
    http::register(functions);
    ssh::register(functions);
    git::register(functions);
    guest::register(functions);
    exec::register(functions);
    systemd::register(functions);
    json::register(functions);
    time::register(functions);
}

#[cfg(test)]
mod tests;
