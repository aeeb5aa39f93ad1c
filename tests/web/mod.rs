//! The page, in a real browser and over plain HTTP.

mod axe;
mod browser;
mod corrections;
mod dev;
mod firefox;
mod frozen;
mod jobs;
mod pages;
mod requests;
mod submit;
mod visitors;
mod visits;
mod world;
