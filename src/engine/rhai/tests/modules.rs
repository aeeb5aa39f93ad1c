//! Modules that scripts import from configured folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

fn with_folders(folders: &[&Path]) -> RhaiEngine {
    let folders: Vec<_> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    osis().with_modules(&folders)
}

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    // A new file: its inode differs even within one tick of the clock.
    let new = file.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, file).expect("renamed");
}

#[test]
fn imported_module_gives_its_functions_and_constants() {
    let (first, second) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    write(
        first.path(),
        "tools.rhai",
        "fn double(x) { own(x) } private fn own(x) { x * 2 }\n\
        export const LIMIT = 7;",
    );
    write(
        first.path(),
        "net/web.rhai",
        "import \"tools\" as t; fn quad(x) { t::double(t::double(x)) }",
    );
    write(second.path(), "tools.rhai", "fn double(x) { 0 }");
    write(second.path(), "late.rhai", "#!/usr/bin/env hero\nfn who() { JOB_ID + ENV.GREETING }");
    let engine = with_folders(&[first.path(), second.path()]);
    for (source, expected) in [
        ("import \"tools\" as t; t::double(21)", "42"),
        ("import \"tools.rhai\" as t; t::LIMIT", "7"),
        ("import \"net/web\" as w; w::quad(2)", "8"),
        ("import \"late\" as l; l::who()", "job-1hello"),
        ("fn f() { import \"tools\" as t; t::double(1) } f() + f()", "4"),
        ("let n = \"tools\"; import n as t; [1, 2].map(|x| t::double(x))", "[2,4]"),
    ] {
        assert_eq!(output(&engine, source), expected, "{source}");
        assert!(engine.check(source, &[]).is_empty(), "{source}");
    }
    let hidden = message(&engine, "import \"tools\" as t; t::own(1)");
    assert!(hidden.contains("function not found: t::own"), "{hidden}");
    assert!(message(&engine, "double(1)").contains("function not found"));
}

#[test]
fn changed_module_is_read_again_and_another_is_not() {
    let folder = tempfile::tempdir().expect("dir");
    write(folder.path(), "a.rhai", "fn f() { 1 }");
    let engine = with_folders(&[folder.path()]);
    let source = "import \"a\" as a; a::f()";
    let modules = super::super::modules::Modules::new(&[folder.path().to_owned()]);
    let load = || modules.load(&engine.interpreter, "a").expect("a module").code;
    let first = load();
    assert!(Arc::ptr_eq(&first, &load()));
    assert_eq!(output(&engine, source), "1");
    write(folder.path(), "a.rhai", "fn f() { 2 }");
    assert!(!Arc::ptr_eq(&first, &load()));
    assert_eq!(output(&engine, source), "2");
    fs::remove_file(folder.path().join("a.rhai")).expect("removed");
    assert!(message(&engine, source).starts_with("import a: no a.rhai in "));
}

#[test]
fn module_outside_of_the_folders_is_rejected() {
    let (folder, other) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    write(other.path(), "x.rhai", "fn f() { 1 }");
    symlink(other.path().join("x.rhai"), folder.path().join("link.rhai")).expect("a link");
    symlink(other.path(), folder.path().join("away")).expect("a link");
    fs::create_dir(folder.path().join("dir.rhai")).expect("made");
    nix::unistd::mkfifo(&folder.path().join("pipe.rhai"), nix::sys::stat::Mode::S_IRWXU)
        .expect("a pipe");
    write(folder.path(), "large.rhai", &" ".repeat(1024 * 1024 + 1));
    let engine = with_folders(&[folder.path()]);
    let absolute = other.path().join("x").display().to_string();
    for (name, expected) in [
        ("../x", "a module has a plain name"),
        ("a/../../x", "a module has a plain name"),
        (absolute.as_str(), "a module has a plain name"),
        ("", "a module has a plain name"),
        ("x\\x00", "a module has a plain name"),
        ("link", "its file is a link out of "),
        ("away/x", "its file is a link out of "),
        ("dir", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("large", "its file is larger than 1048576 bytes"),
        ("none", "type.NAME.modules has the folders"),
    ] {
        let message = message(&engine, &format!("import \"{name}\" as m;"));
        assert!(message.starts_with("import ") && message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn mistake_in_a_module_is_named_with_its_file_and_line() {
    let folder = tempfile::tempdir().expect("dir");
    for (name, text) in [
        ("syntax.rhai", "fn f() {\n  let x = ;\n}"),
        ("top.rhai", "\nthrow \"no luck\";"),
        ("late.rhai", "fn f(x) {\n\n  no(x)\n}"),
        ("nested.rhai", "import \"syntax\" as s;"),
        ("back.rhai", "fn call(f) {\n f.call()\n}"),
    ] {
        write(folder.path(), name, text);
    }
    let engine = with_folders(&[folder.path()]);
    let real = folder.path().canonicalize().expect("a path");
    for (source, expected) in [
        (
            "import \"syntax\" as s;",
            "syntax error: unexpected ';' (line 2, position 11, in DIR/syntax.rhai)",
        ),
        (
            "import \"nested\" as s;",
            "syntax error: unexpected ';' (line 2, position 11, in DIR/syntax.rhai)",
        ),
        ("import \"top\" as t;", "no luck (line 2, position 1, in DIR/top.rhai)"),
        (
            "import \"late\" as l;\nl::f(1)",
            "function not found: no (i64) (line 3, position 3, in DIR/late.rhai)",
        ),
        (
            "import \"late\" as l;\nfn g() { import \"late\" as l; l::f(1) } g()",
            "function not found: no (i64) (line 3, position 3, in DIR/late.rhai)",
        ),
        (
            "import \"late\" as l;\nfn g() {\n no() } g()",
            "function not found: no () (line 3, position 2)",
        ),
    ] {
        let message = message(&engine, source).replace(&real.display().to_string(), "DIR");
        assert_eq!(message, expected, "{source}");
    }
}

#[test]
fn imports_are_bounded_and_stop_with_the_job() {
    let folder = tempfile::tempdir().expect("dir");
    write(folder.path(), "me.rhai", "import \"me\" as m;");
    write(folder.path(), "endless.rhai", "loop { }");
    write(folder.path(), "small.rhai", "");
    for n in 0..12 {
        write(folder.path(), &format!("c{n}.rhai"), &format!("import \"c{}\" as c;", n + 1));
    }
    let engine = with_folders(&[folder.path()]);
    for (source, expected) in [
        ("import \"me\" as m;", "import me: the module imports itself"),
        ("import \"c0\" as c;", "import c8: modules import each other more than 8 levels deep"),
        ("loop { import \"small\" as s; }", "too many modules"),
    ] {
        let message = message(&engine, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
    let source = "try { import \"endless\" as e; } catch { } loop { }";
    let run = run_for(&engine, source, Duration::from_millis(100), &Cancel::new());
    assert_eq!(run.result, Err(Failure::Timeout));
}

#[test]
fn mistakes_of_imported_modules_are_found_without_a_run() {
    let folder = tempfile::tempdir().expect("dir");
    for (name, text) in [
        ("good.rhai", "import \"bad\" as b;\nfn f() { 1 }"),
        ("bad.rhai", "import \"good\" as g;\nfn f() {\n  file_raed()\n}"),
        ("syntax.rhai", "fn f() {\n  let x = ;\n}"),
        ("lost.rhai", "fn f() { import \"none\" as n; }"),
    ] {
        write(folder.path(), name, text);
    }
    let engine = with_folders(&[folder.path()]);
    let real = folder.path().canonicalize().expect("a path").display().to_string();
    let found = |source: &str| -> Vec<String> {
        let findings = engine.check(source, &[]).into_iter().map(|found| {
            let file = found.file.unwrap_or_default();
            let file = file.replace(&real, "DIR");
            format!("{file}:{}:{}: {}", found.line, found.column, found.message)
        });
        findings.collect()
    };
    assert_eq!(found("import \"good\" as g;"), ["DIR/bad.rhai:3:3: unknown function `file_raed`"]);
    assert_eq!(
        found("no();\nfn g() { import \"syntax\" as s; import \"syntax\" as t; }"),
        [":1:1: unknown function `no`", "DIR/syntax.rhai:2:11: syntax error: unexpected ';'"]
    );
    let lost = found("\nimport \"none\" as n; import \"lost\" as l;");
    assert!(lost[0].starts_with(":2:8: import none: no none.rhai in "), "{lost:?}");
    assert!(lost[1].starts_with("DIR/lost.rhai:1:17: import none: no none.rhai"), "{lost:?}");
    let without = osis().check("import \"x\" as x;", &[]);
    assert!(without[0].message.starts_with("import x: no folder has modules"), "{without:?}");
    assert!(message(&osis(), "import \"x\" as x;").starts_with("import x: no folder has modules"));
}
