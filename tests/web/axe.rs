//! The checks of accessibility by axe-core.

use std::path::PathBuf;

use super::browser::Browser;

/// The script as `make deps-test` unpacks it.
pub(crate) fn script() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/axe-core/axe.min.js").into()
}

/// The rules that a page is held against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// WCAG 2 A and AA up to 2.2, and best practice.
    All,
    /// The rules about colours: a second theme can break no others.
    Colours,
}

/// Returns what axe-core reports of the open page.
pub(crate) fn violations(browser: &Browser, rules: Rules) -> Vec<String> {
    let source = std::fs::read_to_string(script()).expect("axe-core");
    browser.run(&format!("if (!window.axe) {{ {source}; }}"));
    let only = match rules {
        Rules::All => "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']",
        Rules::Colours => "{ type: 'rule', values: ['color-contrast', 'link-in-text-block'] }",
    };
    let found = browser.run_async(&format!(
        "const found = await axe.run({{ runOnly: {only}, resultTypes: ['violations'] }});
         return found.violations.map((of) => `${{of.impact}} ${{of.id}}: ${{of.help}}: `
             + of.nodes.slice(0, 3).map((node) => node.html).join(' | '));"
    ));
    match found.as_array() {
        Some(found) => found.iter().map(ToString::to_string).collect(),
        None => vec![format!("axe-core failed: {found}")],
    }
}
