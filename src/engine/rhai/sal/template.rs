//! Templates in the language of Jinja, with the filters of Tera.

use std::cell::Cell;
use std::io::{self, Write};

use ::rhai::{Dynamic, Map};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, escape_formatter};
use serde_json::Value as Json;

use super::context::{CallError, CallResult, RhaiResult, SalJob, excerpt, operation};
use super::files::{read_text, write_text};
use super::template_text::{TextBounds, add_text_filters, plain};
use super::template_values::{add_functions, add_tests, add_value_filters};
use crate::config::RhaiLimits;
use crate::engine::rhai::formats::to_json;
use crate::engine::rhai::functions::Functions;

/// The limit of template instructions for one rendering; takes a few seconds.
const FUEL: u64 = 20_000_000;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.class::<TemplateBuilder>("TemplateBuilder");
    functions.add(
        "template_builder_open",
        ["path"],
        "Opens a template in the language of Jinja, with the filters of Tera: {{ name }} inserts a \
         value, {% for %} repeats, {% if %} chooses. A name without a value is an error where it is \
         inserted, and false in a condition. In a file .html, .htm or .xml inserted values are \
         escaped, except with `|safe`.",
        r#"
file_write("page.txt", "Dear {{ name }},{% for item in items %} {{ item }}{% endfor %}");
template_builder_open("page.txt")
    .add_var("name", "Ann")
    .add_var("items", ["tea", "cake"])
    .render()
// → Dear Ann, tea cake"#,
        |path: &str| open("template_builder_open", path),
    );
    functions.add(
        "template_open",
        ["path"],
        "Does the same as template_builder_open.",
        r#"
file_write("t", "{{ list|join(sep=\", \") }}");
template_open("t").add_var("list", ["a", "b"]).render()
// → a, b"#,
        |path: &str| open("template_open", path),
    );
    functions.add(
        "add_var",
        ["builder", "name", "value"],
        "Sets the value of a name in the template: a string, a number, an array, a map ...",
        r#"
file_write("t", "{{ user.name }} is {{ user.age }}");
template_builder_open("t").add_var("user", #{name: "Ann", age: 44}).render()
// → Ann is 44"#,
        |mut builder: TemplateBuilder, name: &str, value: Dynamic| -> RhaiResult<_> {
            builder.set("add_var", name, &value)?;
            Ok(builder)
        },
    );
    functions.add(
        "add_vars",
        ["builder", "values"],
        "Sets the values of several names.",
        r#"
file_write("t", "{{ a }}-{{ b }}");
template_builder_open("t").add_vars(#{a: 1, b: 2}).render()
// → 1-2"#,
        |mut builder: TemplateBuilder, values: Map| -> RhaiResult<_> {
            for (name, value) in &values {
                builder.set("add_vars", name, value)?;
            }
            Ok(builder)
        },
    );
    register_rendering(functions);
}

fn open(name: &str, path: &str) -> RhaiResult<TemplateBuilder> {
    operation(name, path, |job| {
        let source = read_text(job, &job.to_read(path)?)?;
        Ok(TemplateBuilder { path: path.to_owned(), source, vars: serde_json::Map::new() })
    })
}

fn register_rendering(functions: &mut Functions<'_>) {
    functions.add(
        "render",
        ["builder"],
        "Returns the rendered text.",
        r#"
file_write("t", "{{ name|upper }}");
template_builder_open("t").add_var("name", "ann").render()
// → ANN"#,
        |builder: TemplateBuilder| -> RhaiResult<String> {
            operation("render", &builder.path, |job| builder.render(job))
        },
    );
    functions.add(
        "render_to_file",
        ["builder", "path"],
        "Writes the rendered text to a file.",
        r#"
file_write("t", "listen {{ port }};");
template_builder_open("t").add_var("port", 8080).render_to_file("site.conf");
file_read("site.conf")
// → listen 8080;"#,
        |builder: TemplateBuilder, path: &str| {
            operation("render_to_file", path, |job| {
                let text = builder.render(job)?;
                write_text(&job.to_write(path)?, &text)
            })
        },
    );
}

#[derive(Debug, Clone)]
struct TemplateBuilder {
    path: String,
    source: String,
    /// The values as JSON: Rhai would not count what they have in them, not even a builder.
    vars: serde_json::Map<String, Json>,
}

impl TemplateBuilder {
    fn set(&mut self, function: &str, name: &str, value: &Dynamic) -> RhaiResult<()> {
        let value = to_json(value).map_err(|why| format!("{function} {}: {why}", excerpt(name)))?;
        self.vars.insert(name.to_owned(), value);
        Ok(())
    }

    fn render(&self, job: SalJob<'_>) -> CallResult<String> {
        let environment = environment(job)?;
        let values = Serde(&self.vars);
        let stopped = Cell::new(None);
        let mut text = BoundedText { text: Vec::new(), job, stopped: &stopped };
        let rendered = environment
            .template_from_named_str(&self.path, &self.source)
            .and_then(|template| template.render_captured_to(values, &mut text).map(|_| ()));
        if let Some(failed) = stopped.take() {
            return Err(failed);
        }
        rendered.map_err(|error| one_line(&error))?;
        String::from_utf8(text.text).map_err(|_| "not UTF-8 text".into())
    }
}

/// Returns the language: Jinja, with the filters, functions and tests of Tera.
fn environment(job: SalJob<'_>) -> CallResult<Environment<'static>> {
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    let mut environment = Environment::new();
    // A missing name is an error where it is printed, and false in a condition.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|path| {
        let is_html = [".html", ".htm", ".xml"].iter().any(|ending| path.ends_with(ending));
        if is_html { AutoEscape::Html } else { AutoEscape::None }
    });
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool | ValueKind::Number => Ok(out.write_str(&plain(value))?),
        _ => escape_formatter(out, state, value),
    });
    environment.set_syntax(syntax.map_err(|error| one_line(&error))?);
    environment.set_fuel(Some(FUEL));
    let RhaiLimits { string_size_max: bytes_max, array_len_max: elements_max, .. } =
        *job.run.limits;
    let bounds = TextBounds { bytes_max, elements_max };
    add_text_filters(&mut environment, bounds);
    add_value_filters(&mut environment, bounds);
    add_functions(&mut environment, job.run.script.env.clone());
    add_tests(&mut environment);
    Ok(environment)
}

/// Collects the rendered text; fails at the size limit of a string, and when the job must end.
struct BoundedText<'a> {
    text: Vec<u8>,
    job: SalJob<'a>,
    stopped: &'a Cell<Option<CallError>>,
}

impl Write for BoundedText<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes_max = self.job.run.limits.string_size_max;
        let checked = if (self.text.len() + bytes.len()) as u64 > bytes_max {
            Err(CallError::Failed(format!("the result is longer than {bytes_max} bytes")))
        } else {
            self.job.check_stop()
        };
        if let Err(failed) = checked {
            self.stopped.set(Some(failed));
            return Err(io::ErrorKind::Other.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn one_line(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line} of the template)"),
        None => what,
    }
}
