//! The rule that imports go one way: no circle among files, and none among the files and folders
//! that lie side by side in a folder.
//!
//! A `pub use` is followed to the file that has the item. A file that declares modules may
//! re-export and call them by their names; what it takes from them with a plain `use` counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::source::{code_of, is_source};

type ModulePath = Vec<String>;

/// The files of `src`, and what each names.
struct Tree<'a> {
    files: BTreeMap<ModulePath, &'a str>,
    named: BTreeMap<&'a str, Vec<Named>>,
    /// The items that a module re-exports, with the paths that they have there.
    reexports: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
}

/// A path in the code of a file, from the root of the crate.
struct Named {
    line: usize,
    path: ModulePath,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Use,
    PubUse,
    Inline,
}

/// A file or folder, by its path, that depends on another.
struct Import<'a> {
    line: usize,
    file: &'a str,
    to: &'a str,
}

type Graph<'a> = BTreeMap<&'a str, Vec<Import<'a>>>;

/// Returns one fault for each circle.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let tree = Tree::new(files);
    let mut graphs = vec![tree.between_files()];
    let folders: BTreeSet<&str> = tree
        .named
        .keys()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..=at]))
        .collect();
    graphs.extend(folders.iter().map(|folder| tree.side_by_side(folder)));
    let described = |graph| -> Vec<String> {
        circles(graph).iter().map(|circle| described(circle, graph)).collect()
    };
    graphs.iter().flat_map(described).collect()
}

fn described(circle: &BTreeSet<&str>, graph: &Graph) -> String {
    let members: Vec<&str> = circle.iter().copied().collect();
    let mut text = format!(
        "{} import each other in a circle: data flows one way, so move what they share to a file \
         that imports none of them",
        members.join(", ")
    );
    for Import { line, file, to } in circle.iter().flat_map(|path| &graph[path]) {
        if circle.contains(to) {
            let _ = write!(text, "\n    {file}:{line} imports {to}");
        }
    }
    text
}

impl<'a> Tree<'a> {
    fn new(files: &'a [(String, String)]) -> Self {
        let sources: Vec<&(String, String)> =
            files.iter().filter(|(path, _)| is_source(path) && path != "src/main.rs").collect();
        let mut tree = Self {
            files: sources.iter().map(|(path, _)| (module_path(path), path.as_str())).collect(),
            named: BTreeMap::new(),
            reexports: BTreeMap::new(),
        };
        for (path, text) in sources {
            let own = module_path(path);
            let code = code_of(text);
            let mut all = Vec::new();
            for (at, words, form) in paths(&code) {
                let Some(path) = tree.path_from_root(&own, &words) else { continue };
                let line = code[..at].matches('\n').count() + 1;
                if let (Form::PubUse, Some(name)) = (form, path.last()) {
                    let items = tree.reexports.entry(own.clone()).or_default();
                    items.insert(name.clone(), path.clone());
                }
                all.push(Named { line, path, form });
            }
            tree.named.insert(path, all);
        }
        tree
    }

    /// Returns a path that begins in a module as one from the root, and `None` for another
    /// crate's.
    fn path_from_root(&self, own: &[String], words: &[String]) -> Option<ModulePath> {
        let first = words.first()?.as_str();
        let mut path = if ["crate", "hero"].contains(&first) { Vec::new() } else { own.to_vec() };
        let child = || own.iter().chain([&words[0]]).cloned().collect::<ModulePath>();
        if !["crate", "hero", "self", "super"].contains(&first)
            && !self.files.contains_key(&child())
        {
            return None;
        }
        for word in words {
            match word.as_str() {
                "crate" | "hero" | "self" => {}
                "super" => drop(path.pop()),
                _ => path.push(word.clone()),
            }
        }
        Some(path)
    }

    /// Returns the file that has what a path names. The root has nothing.
    fn file_of(&self, path: &[String]) -> Option<&'a str> {
        let mut path = path.to_vec();
        // A bound for re-exports that lead to each other.
        for _ in 0..10 {
            let depth = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
            let item = path.get(depth);
            let items = self.reexports.get(&path[..depth]);
            match item.and_then(|item| items?.get(item)).filter(|to| **to != path) {
                Some(to) => path = to.iter().chain(&path[depth + 1..]).cloned().collect(),
                None if depth == 0 => return None,
                None => return self.files.get(&path[..depth]).copied(),
            }
        }
        None
    }

    fn between_files(&self) -> Graph<'a> {
        let mut graph = Graph::new();
        for (file, named) in &self.named {
            let own = module_path(file);
            let imports = graph.entry(*file).or_default();
            for Named { line, path, form } in named {
                let Some(to) = self.file_of(path).filter(|to| to != file) else { continue };
                let of_its_child = module_path(to).starts_with(&own);
                if *form == Form::Use || !of_its_child {
                    add(imports, Import { line: *line, file, to });
                }
            }
        }
        graph
    }

    /// Returns the imports among the entries of a folder, without the root of a package.
    fn side_by_side(&self, folder: &str) -> Graph<'a> {
        let mut graph = Graph::new();
        for (file, named) in &self.named {
            let Some(from) = entry_of(folder, file) else { continue };
            let imports: &mut Vec<Import<'a>> = graph.entry(from).or_default();
            for Named { line, path, .. } in named {
                let to = self.file_of(path).and_then(|to| entry_of(folder, to));
                if let Some(to) = to.filter(|to| *to != from) {
                    add(imports, Import { line: *line, file, to });
                }
            }
        }
        graph
    }
}

fn add<'a>(imports: &mut Vec<Import<'a>>, import: Import<'a>) {
    if !imports.iter().any(|other| (other.file, other.to) == (import.file, import.to)) {
        imports.push(import);
    }
}

/// Returns the path up to the entry of a folder, without `.rs`: a file and its folder are one.
fn entry_of<'a>(folder: &str, file: &'a str) -> Option<&'a str> {
    let rest = file.strip_prefix(folder)?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    let is_root = name == "lib" || folder.ends_with(&format!("/{name}/"));
    (!is_root).then(|| &file[..folder.len() + name.len()])
}

fn module_path(path: &str) -> ModulePath {
    let rest = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module: ModulePath =
        rest.split('/').filter(|part| *part != "lib").map(str::to_owned).collect();
    if is_package_root(&module) {
        module.pop();
    }
    module
}

/// Whether a file is the root of a package in the folder of its name, such as `store/store`.
fn is_package_root(module: &[String]) -> bool {
    matches!(module, [.., folder, file] if folder == file)
}

/// Returns every path of the code with its place and form, and the groups of `use` written out.
fn paths(code: &str) -> Vec<(usize, ModulePath, Form)> {
    let mut found = Vec::new();
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let end = word_end(code, at);
        let word = &code[at..end];
        if word == "use" {
            let stop = code[end..].find(';').map_or(code.len(), |stop| end + stop);
            let mut used = Vec::new();
            expand(&code[end..stop], end, &[], &mut used);
            let line = code[..at].rsplit('\n').next().unwrap_or_default().trim_start();
            let form = if line.starts_with("pub") { Form::PubUse } else { Form::Use };
            found.extend(used.into_iter().map(|(at, path)| (at, path, form)));
            at = stop;
        } else if word == "in" && code[..at].ends_with("pub(") {
            at = code[end..].find(')').map_or(code.len(), |stop| end + stop);
        } else {
            let (path, stop) = chain(code, at);
            if path.len() > 1 && !code[..at].ends_with("::") && !code[..at].ends_with('.') {
                found.push((at, path, Form::Inline));
            }
            at = stop;
        }
    }
    found
}

/// Reads `a::b::c` from a word on, and returns it with its end.
fn chain(code: &str, from: usize) -> (ModulePath, usize) {
    let mut path = Vec::new();
    let mut at = from;
    loop {
        let end = word_end(code, at);
        path.push(code[at..end].to_owned());
        let next = end + 2;
        if !code[end..].starts_with("::") || !code.as_bytes().get(next).is_some_and(|b| is_word(*b))
        {
            return (path, end);
        }
        at = next;
    }
}

/// Adds the paths of the inside of a `use`, which may be a group.
fn expand(tree: &str, offset: usize, before: &[String], found: &mut Vec<(usize, ModulePath)>) {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push((start, &tree[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push((start, &tree[start..]));
    for (start, part) in parts {
        let skipped = part.len() - part.trim_start().len();
        let (at, part) = (offset + start + skipped, part.trim());
        let (head, group) = match part.split_once('{') {
            Some((head, group)) => (head, Some(group.strip_suffix('}').unwrap_or(group))),
            None => (part.split_whitespace().next().unwrap_or_default(), None),
        };
        let mut path = before.to_vec();
        let words = head.split("::").map(str::trim).filter(|word| !word.is_empty() && *word != "*");
        path.extend(words.map(str::to_owned));
        match group {
            Some(group) => expand(group, at + head.len() + 1, &path, found),
            None if !path.is_empty() => found.push((at, path)),
            None => {}
        }
    }
}

fn word_end(code: &str, from: usize) -> usize {
    let rest = &code.as_bytes()[from..];
    from + rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the sets of files that reach each other.
fn circles<'a>(graph: &Graph<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&'a str>> =
        graph.keys().map(|path| (*path, reached_from(graph, path))).collect();
    let mut circles: Vec<BTreeSet<&'a str>> = Vec::new();
    for path in graph.keys() {
        if reached[path].contains(path) && !circles.iter().any(|circle| circle.contains(path)) {
            let both = reached[path].iter().filter(|other| reached[*other].contains(path));
            circles.push(both.copied().collect());
        }
    }
    circles
}

fn reached_from<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(path) = next.pop() {
        for import in graph.get(path).into_iter().flatten() {
            if reached.insert(import.to) {
                next.push(import.to);
            }
        }
    }
    reached
}

#[test]
fn circles_are_found_through_every_form_of_import() {
    let file = |path: &str, text: &str| (format!("src/room{path}"), text.to_owned());
    let cases = [
        ("use crate::room::b::B;", "use super::a::A;"),
        ("use crate::{error, room::{c, b::{self, B}}};", "use super::{\n    c,\n    a::A,\n};"),
        ("fn f() { super::b::g(); }", "fn g() { crate::room::a::f(); }"),
        ("pub use super::b::*;", "use super::super::room::a;"),
        ("use super::FromB;", "use crate::room::FromA;"),
    ];
    let parent = "mod a;\nmod b;\npub use a::FromA;\npub(crate) use b::{FromB};";
    for (a, b) in cases {
        let files = [file(".rs", parent), file("/a.rs", a), file("/b.rs", b), file("/c.rs", "")];
        let said = faults(&files).join("\n");
        assert!(said.contains("src/room/a.rs:1 imports src/room/b"), "`{a}` `{b}`: {said}");
        assert!(said.contains("src/room/b.rs:"), "`{a}` `{b}`: {said}");
    }
    let parent = [file(".rs", "mod a;\nuse a::A;"), file("/a.rs", "use super::Shared;")];
    assert!(faults(&parent).join("\n").contains("src/room.rs:2 imports src/room/a.rs"));
}

#[test]
fn folders_that_import_each_other_through_different_files_are_a_circle() {
    let file = |path: &str, text: &str| (format!("src/room{path}"), text.to_owned());
    let files = [
        file("/left/one.rs", "use crate::room::right::two;"),
        file("/left/two.rs", ""),
        file("/right/one.rs", "use crate::room::left::two;"),
        file("/right/two.rs", ""),
    ];
    let said = faults(&files).join("\n");
    assert!(said.contains("src/room/left/one.rs:1 imports src/room/right"), "{said}");
}

#[test]
fn declarations_tests_and_comments_are_no_imports() {
    let file = |path: &str, text: &str| (format!("src/room{path}"), text.to_owned());
    let a = "//! Of [`super::b::B`].\nuse super::Shared;\n#[cfg(test)]\nmod tests {\n    use super::super::b;\n}";
    let parent =
        "pub(in crate::room) mod a;\nmod b;\npub use a::A;\npub struct Shared;\nfn f() { a::g() }";
    let files = [
        file(".rs", parent),
        file("/a.rs", a),
        file("/b.rs", "use super::a::A;\nuse std::fmt;\nfn f() { \"super::b\"; }"),
        file("/a/tests.rs", "use crate::room::b;"),
    ];
    assert_eq!(faults(&files), [] as [&str; 0]);
}
