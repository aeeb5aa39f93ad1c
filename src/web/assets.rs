//! The style sheet and the script. They are in the binary, and their address has a hash of their content, so
//! that browsers keep them for a year.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest::{Context, SHA256};

use crate::proto::text::hexadecimal;

const STYLE: &str = include_str!("static/hero.css");
const SCRIPT: &str = include_str!("static/hero.js");
/// The glyphs, which stand in each page.
pub(super) const SPRITE: &str = include_str!("static/sprite.svg");

const FILES: [(&str, &str, &str); 2] = [
    ("hero.css", "text/css; charset=utf-8", STYLE),
    ("hero.js", "text/javascript; charset=utf-8", SCRIPT),
];

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut context = Context::new(&SHA256);
    for (_, _, text) in FILES {
        context.update(text.as_bytes());
    }
    hexadecimal(&context.finish().as_ref()[..6])
});

/// Returns the path of a file, below the prefix.
pub(super) fn path(name: &str) -> String {
    format!("/static/{}/{name}", *HASH)
}

pub(super) async fn file(Path((hash, name)): Path<(String, String)>) -> Response {
    match FILES.iter().find(|(of, ..)| *of == name && hash == *HASH) {
        Some((_, kind, text)) => {
            let kept = "public, max-age=31536000, immutable";
            ([(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, kept)], *text).into_response()
        }
        None => (StatusCode::NOT_FOUND, "No such file.").into_response(),
    }
}
