//! The page, in a real browser and over plain HTTP.

mod axe;
mod browser;
mod dev;
mod firefox;
mod frozen;
mod jobs;
mod operators;
mod pages;
mod requests;
mod submit;
mod visitors;
mod visits;
mod world;
