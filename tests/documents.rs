//! What the documents say of the program is true: their command lines, their links, the schema of hero.toml.

mod commands;
mod installed;
mod schema;
