//! The functions of `sal`: one file per group. A function that fails throws an error with the names
//! of the operation and its object, as `file_read /x: no such file or directory`.

mod commands;
mod context;
mod copy;
mod download;
mod environment;
mod external_program;
mod files;
mod find;
mod git;
mod http;
mod packages;
mod ports;
mod processes;
mod redis_client;
mod remove;
mod replacer;
mod scripts;
mod ssh;
mod systemd;
mod template;
mod template_text;
mod template_values;
mod text;
mod time;

use super::functions::Functions;

pub(super) use commands::is_command;

pub(super) fn register(functions: &mut Functions<'_>) {
    commands::register(functions);
    processes::register(functions);
    files::register(functions);
    copy::register(functions);
    find::register(functions);
    environment::register(functions);
    download::register(functions);
    packages::register(functions);
    text::register(functions);
    replacer::register(functions);
    template::register(functions);
    ports::register(functions);
    http::register(functions);
    ssh::register(functions);
    git::register(functions);
    redis_client::register(functions);
    scripts::register(functions);
    systemd::register(functions);
    time::register(functions);
}

#[cfg(test)]
mod tests;
