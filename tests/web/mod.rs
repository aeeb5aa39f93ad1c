//! The page, in a real browser and over plain HTTP.

mod axe;
mod browser;
mod jobs;
mod pages;
mod requests;
mod site;
mod submit;
mod visits;
mod world;
