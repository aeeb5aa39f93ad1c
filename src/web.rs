//! The page: HTML about jobs, queues and actors, from what the API knows. A page is a document with links and
//! forms; its script adds live numbers, keys and dialogs.
//!
//! Every change goes through the table of methods of the API, so that the page checks and does the same.

mod actors;
mod assets;
mod audit;
mod brokers;
mod cookie;
mod cron;
mod cron_form;
mod doc;
mod events;
mod fields;
mod graph;
mod graphs;
mod guard;
mod job;
mod jobs;
mod layout;
mod limits;
mod links;
mod live;
mod login;
mod machines;
mod notifications;
mod objects;
mod overview;
mod parts;
mod prelude;
mod queues;
mod records;
mod relations;
mod scripts;
mod session;
mod site;
mod snapshot;
mod stats;
mod submit;
mod visible;
mod visit;
mod visitor;
mod web_error;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::rpc::{ApiService, Pages};

use site::Site;

/// Returns the pages, and the page about refusals.
pub fn pages(service: ApiService) -> Pages {
    let site = Site::new(service);
    let links = site.links.clone();
    let refused = move |status, reason: &str| {
        let mut page = layout::refused(status, reason, &links);
        guard::bound(&mut page);
        page
    };
    Pages { routes: routes(site), refused: Arc::new(refused) }
}

/// Returns the routes of the page, without a prefix.
fn routes(site: Site) -> Router {
    let body = from_fn_with_state(site.clone(), submit::bound_body);
    let pages = Router::new()
        .route("/", get(overview::show))
        .route("/queues", get(queues::list).post(queues::change_many))
        .route("/queues/{name}", get(queues::show).post(queues::change))
        .route("/queues/{name}/purge", get(queues::ask_purge))
        .route("/machines", get(machines::list).post(machines::change_many))
        .route("/machines/{name}", get(machines::show).post(machines::change))
        .route("/machines/{name}/forget", get(machines::ask_forget))
        .route("/actors", get(actors::list).post(actors::change_many))
        .route("/actors/{name}", get(actors::show).post(actors::change))
        .route("/actors/{name}/stop", get(actors::ask_stop))
        .route("/jobs", get(jobs::list).post(jobs::change))
        .route("/jobs.json", get(jobs::json))
        .route("/jobs.csv", get(jobs::csv))
        .route("/jobs/{id}", get(job::show).post(job::change))
        .route("/jobs/{id}/graph", get(graph::show))
        .route("/jobs/{id}/log", get(job::log))
        .route("/jobs/{id}/output", get(job::download_output))
        .route("/jobs/{id}/files/{name}", get(job::download))
        .route("/jobs/{id}/delete", get(job::ask_delete))
        .route(
            "/jobs/{id}/correct",
            get(job::ask_correction).post(job::correct).layer(body.clone()),
        )
        .route("/notifications", get(notifications::list).post(notifications::test))
        .route("/stats", get(stats::show))
        .route("/audit", get(audit::list))
        .route("/graphs", get(graphs::list))
        .route("/graphs/{id}", get(graph::show_whole).post(graph::change))
        .route(
            "/graphs/{id}/correct",
            get(graph::ask_correction).post(graph::correct).layer(body.clone()),
        )
        .route("/graphs/{id}/stop", get(graph::ask_stop))
        .route("/graphs/{id}/delete", get(graph::ask_delete))
        .route("/submit", get(submit::show).post(submit::change).layer(body))
        .route("/dead", get(jobs::list_dead).post(jobs::change_dead))
        .route("/limits", get(limits::list))
        .route("/cron", get(cron::list))
        .route("/cron/{name}", get(cron::show).post(cron::change))
        .route("/cron/{name}/history", get(cron::all_firings))
        .route("/cron/{name}/delete", get(cron::ask_delete))
        .route("/scripts", get(scripts::list))
        .route("/scripts/{name}", get(scripts::show).post(scripts::change))
        .route("/cron-form", get(cron_form::show).post(cron_form::change))
        .route("/objects", get(objects::list).post(objects::change))
        .route("/brokers", get(brokers::list))
        .route("/records", get(records::list))
        .route("/events", get(events::follow))
        .route("/theme", post(login::theme))
        .route("/logout", post(login::sign_out))
        .fallback(web_error::no_such_page)
        .layer(from_fn_with_state(site.clone(), guard::identify))
        .layer(from_fn_with_state(site.clone(), guard::in_time));
    let open = Router::new()
        .route("/login", get(login::form).post(login::sign_in).layer(login::body_limit()))
        .route("/static/{hash}/{name}", get(assets::file));
    Router::new().merge(pages).merge(open).with_state(site).layer(from_fn(guard::headers))
}
