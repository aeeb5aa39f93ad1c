//! The page, in a real browser and over plain HTTP.

mod axe;
mod browser;
mod corrections;
mod dev;
mod firefox;
mod frozen;
mod graphs;
mod jobs;
mod links;
mod machines;
mod notifications;
mod operators;
mod pages;
mod periodic_jobs;
pub(crate) mod requests;
mod revoked;
mod scripts;
mod submit;
mod tasks;
mod uploads;
mod verbs;
mod visitors;
mod visits;
mod world;
