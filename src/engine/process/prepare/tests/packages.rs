//! Tests of the packages that scripts of Python declare, and of what they need beside them.

use super::*;

#[test]
fn packages_are_installed_once_and_reused() {
    if !can_install_packages() {
        return;
    }
    let world = World::new();
    let python = world.engine("python", &world.wheel());
    let source = "# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\"greeting\"]\n# ///\n\
        import greeting, sys\nprint(greeting.hello(), sys.prefix)\n";
    let outputs: Vec<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..3).map(|_| scope.spawn(|| world.output(&python, source))).collect();
        jobs.into_iter().map(|job| job.join().expect("no panic")).collect()
    });
    assert!(outputs[0].starts_with("hello ") && outputs[0].ends_with("/venv"), "{outputs:?}");
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}");
    // Another script with the same requirements uses the same environment.
    let other = source.replace("print(", "print(1, ");
    assert_eq!(world.output(&python, &other), format!("1 {}", outputs[0]));
    assert_eq!(fs::read_dir(world.path("cache/python")).expect("there").count(), 2);
}

#[test]
fn pip_installs_packages_if_uv_fails_and_the_log_says_why() {
    if !can_install_packages() {
        return;
    }
    let world = World::new();
    fs::create_dir(world.path("bin")).expect("created");
    fs::copy("/bin/false", world.path("bin/uv")).expect("copied");
    let env = format!("env = {{ PATH = {:?}, PIP_RETRIES = \"1\" }}", world.path("bin"));
    let keys = world.wheel().replace("{ ", &format!("{{ {env}, "));
    let python = world.engine("python", &keys);
    let source = "# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\"greeting\"]\n# ///\n\
        import greeting\nprint(greeting.hello())\n";
    assert_eq!(world.output(&python, source), "hello");
    let expected =
        format!("{} fails, so pip installs the packages: exit code 1", world.path("bin/uv"));
    assert_eq!(world.log(), expected, "and nothing of the check of the version");
}

#[test]
fn the_message_of_the_installer_for_a_missing_package_is_the_error() {
    if !can_install_packages() {
        return;
    }
    let world = World::new();
    let python = world.engine("python", &world.wheel());
    let ask = |package: &str| format!("# /// script\n# dependencies = [{package:?}]\n# ///\n");
    let message = world.message(&python, &ask("no-such-package"));
    assert!(message.starts_with("the script's packages cannot be installed: "), "{message}");
    assert!(message.contains("no-such-package"), "{message}");
}

#[test]
fn sources_are_built_only_where_the_type_allows_it() {
    let world = World::new();
    let python = world.engine("python", "");
    let ask = |package: &str| format!("# /// script\n# dependencies = [{package:?}]\n# ///\n");
    for package in [
        "x @ file:///etc",
        "git+http://127.0.0.1:1/x",
        "x @ http://127.0.0.1:1/x.tar.gz?x=.whl",
        "x.tar.gz",
    ] {
        let message = world.message(&python, &ask(package));
        assert!(message.contains("source_builds"), "{package}: {message}");
    }
    if !can_install_packages() {
        return;
    }
    // The index has the source alone, whose build would leave a mark.
    let (folder, mark) = (world.path("links"), world.path("built"));
    let source = format!("{folder}/evil-1.0");
    fs::create_dir_all(&source).expect("created");
    let setup = format!(
        "open({mark:?}, 'w').close()\nfrom setuptools import setup\nsetup(name='evil', version='1.0')\n"
    );
    fs::write(format!("{source}/setup.py"), setup).expect("written");
    let info = "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n";
    fs::write(format!("{source}/PKG-INFO"), info).expect("written");
    pack(&folder, "evil-1.0");
    let keys = format!("dependencies = {{ index = \"none\", find_links = [{folder:?}] }}");
    let python = world.engine_in("python", &keys, "enabled = false");
    let message = world.message(&python, &ask("evil"));
    assert!(message.starts_with("the script's packages cannot be installed: "), "{message}");
    assert!(!Path::new(&mark).exists(), "the source was built: {message}");
}

/// Packs the folder of a source as an index has it.
fn pack(folder: &str, name: &str) {
    let mut tar = command("/bin/tar".as_ref());
    tar.args(["-C", folder, "-czf"]).arg(format!("{folder}/{name}.tar.gz")).arg(name);
    assert!(tar.output().expect("it runs").status.success());
}

#[test]
fn metadata_that_cannot_be_satisfied_is_rejected() {
    let world = World::new();
    let python = world.engine("python", "");
    let result = world.run(&python, "# /// script\n# dependencies = [\n# ///\nprint(1)");
    let Err(Failure::Invalid { message }) = result else { panic!("{result:?}") };
    assert!(message.starts_with("invalid job: script metadata: line 2: "), "{message}");
    let message = world.message(&python, "# /// script\n# requires-python = \"<3\"\n# ///\n");
    assert!(message.starts_with("the script requires Python <3, but /usr/bin/python3 is 3."));
    let off = world.engine("python", "dependencies.enabled = false");
    let message = world.message(&off, "# /// script\n# dependencies = [\"x\"]\n# ///\n");
    assert!(message.contains("dependencies.enabled is false"), "{message}");
}

#[test]
fn the_error_of_multiprocessing_names_the_key_that_opens_what_it_needs() {
    let world = World::new();
    let python = world.engine("python", "");
    let files = "set type.python.sandbox.write = [\"/dev/shm\"]";
    let sockets = "set type.python.sandbox.unix_sockets = true";
    for (source, key) in [
        ("import multiprocessing as m\nm.Value('i', 1)\n", files),
        (
            "from multiprocessing import shared_memory as s\ns.SharedMemory(create=True, size=1)\n",
            files,
        ),
        ("import multiprocessing as m\nm.Manager()\n", sockets),
        ("import multiprocessing as m\nm.get_context('forkserver').Pool(1)\n", sockets),
    ] {
        let message = world.message(&python, source);
        assert!(message.ends_with(key), "{message}");
    }
}

#[test]
fn python_in_a_shell_script_has_semaphores_and_names_the_key_of_values() {
    let world = World::new();
    let bash = world.engine("bash", "");
    // As Ansible does it, with forks, and as a program of its own does it, with new interpreters.
    let source = "/usr/bin/python3 -c 'import multiprocessing as m\n\
        queue = m.get_context(\"fork\").Queue()\n\
        child = m.get_context(\"fork\").Process(target=queue.put, args=[7])\n\
        child.start(); print(queue.get()); child.join()'\n\
        cat > work.py <<'EOF'\nimport multiprocessing as m\ndef double(n): return 2 * n\n\
        if __name__ == '__main__':\n  with m.get_context('spawn').Pool(2) as pool: print(pool.map(double, [1, 2]))\nEOF\n\
        python3 work.py";
    assert_eq!(world.output(&bash, source), "7\n[2, 4]");
    for source in [
        "/usr/bin/python3 -c 'import multiprocessing; multiprocessing.Value(\"i\", 1)'",
        "/usr/bin/python3 -E -c 'import multiprocessing; multiprocessing.Lock()'",
        "echo 'ERROR! Unable to use multiprocessing, this is normally caused by lack of access to /dev/shm: \
         [Errno 13] Permission denied' >&2; exit 1",
    ] {
        let message = world.message(&bash, source);
        assert!(message.ends_with("set type.bash.sandbox.write = [\"/dev/shm\"]"), "{message}");
    }
}

#[test]
fn packages_that_import_multiprocessing_under_another_name_have_semaphores() {
    let world = World::new();
    // As billiard and `multiprocess` take it, without a word of it in the script.
    let package = "echo 'from _multiprocessing import *' > _other.py\n\
        echo 'import _multiprocessing, _other; print(_other.SemLock is _multiprocessing.SemLock)' > run.py\n\
        echo '_other.SemLock(1, 1, 1, \"/a-b\", False).acquire()' >> run.py\n";
    let bash = world.engine("bash", "");
    assert_eq!(world.output(&bash, &format!("{package}python3 run.py")), "True");
    let python = world.engine("python", "warm = false");
    let source = "import ctypes\nname = '_multi' + 'processing'\n\
        lock = __import__(name).SemLock(1, 1, 1, '/a-b', False)\nprint(lock.acquire())";
    assert_eq!(world.output(&python, source), "True");
}

#[test]
fn module_path_of_the_job_goes_before_that_of_hero() {
    let world = World::new();
    let python = world.engine("python", "env = { PYTHONPATH = \"/usr/share/one:/usr/share/two\" }");
    let source = "import hero, os, sys\nfolders = os.environ['PYTHONPATH'].split(':')\n\
        print(folders[:2], sys.path[1:4] == folders, len(folders), os.listdir('.'))";
    let expected = "['/usr/share/one', '/usr/share/two'] True 3 ['script.py']";
    assert_eq!(world.output(&python, source), expected);
}

#[test]
fn semaphores_are_those_of_the_system_where_the_sandbox_leaves_them() {
    let world = World::new();
    let open = world.engine_in("python", "", "enabled = false");
    let source = "import multiprocessing\n\
        lock = multiprocessing.get_context('spawn').Lock()\n\
        print(type(lock._semlock).__base__.__name__, lock._semlock.name is not None)\n";
    assert_eq!(world.output(&open, source), "object True");
    let closed = world.engine("python", "");
    assert_eq!(world.output(&closed, source), "SemLock True");
}

#[test]
fn memory_of_a_process_is_bounded_also_where_it_is_shared() {
    let world = World::new();
    let python = world.engine_in("python", "", "memory = \"128MiB\"");
    assert_eq!(
        world.message(&python, "x = bytearray(1 << 30)"),
        "MemoryError (line 1)",
        "private memory"
    );
    let shared = "import mmap, time\nm = mmap.mmap(-1, 1 << 28)\n\
        for n in range(0, 1 << 28, 4096): m[n] = 1\ntime.sleep(600)";
    let message = world.message(&python, shared);
    assert!(message.starts_with("out of memory: a process of the job"), "{message}");
    let reserved = "import mmap\nprint(len(mmap.mmap(-1, 1 << 33, prot=0)))";
    assert_eq!(world.output(&python, reserved), (1_u64 << 33).to_string(), "address space");
    let small = world.engine_in("python", "", "address_space = \"256MiB\"");
    assert!(world.message(&small, reserved).contains("Cannot allocate memory"));
}

/// Serves the package `greeting` as a registry of npm. Returns its address.
fn registry(world: &World) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    fs::create_dir_all(world.path("npm/package")).expect("created");
    let manifest = "{\"name\": \"greeting\", \"version\": \"1.0.0\", \"scripts\": {\"install\": \"touch ran\"}}";
    fs::write(world.path("npm/package/package.json"), manifest).expect("written");
    let module = "exports.hello = () => 'hello ' + require('fs').existsSync(__dirname + '/ran')\n";
    fs::write(world.path("npm/package/index.js"), module).expect("written");
    pack(&world.path("npm"), "package");
    let tarball = fs::read(world.path("npm/package.tar.gz")).expect("packed");
    let dist = format!("{{\"tarball\": \"{address}/greeting.tgz\"}}");
    let version = manifest.replacen('{', &format!("{{\"dist\": {dist}, "), 1);
    let document = format!(
        "{{\"name\": \"greeting\", \"dist-tags\": {{\"latest\": \"1.0.0\"}}, \"versions\": {{\"1.0.0\": {version}}}}}"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let (status, body) = match asked.split(' ').nth(1) {
                Some("/greeting") => ("200 OK", document.as_bytes()),
                Some("/greeting.tgz") => ("200 OK", &*tarball),
                _ => ("404 Not Found", &b"{}"[..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    address
}

#[test]
fn packages_of_node_are_installed_once_and_found_by_require_and_import() {
    if !needs("npm", || Path::new("/usr/bin/npm").exists()) {
        return;
    }
    let world = World::new();
    let keys = format!("dependencies = {{ index = {:?} }}", registry(&world));
    let node = world.engine("node", &keys);
    let source = "// /// script\n// dependencies = [\"greeting@1\"]\n// ///\n\
        import('greeting').then((it) => console.log(it.default.hello(), require('greeting').hello()))\n";
    assert_eq!(world.output(&node, source), "hello false hello false", "no script of it has run");
    let other = source.replace("console.log(", "console.log(1, ");
    assert_eq!(world.output(&node, &other), "1 hello false hello false");
    assert_eq!(fs::read_dir(world.path("cache/node")).expect("there").count(), 2);
    let message = world.message(&node, &source.replace("greeting@1", "no-such"));
    assert!(
        message.starts_with("the script's packages cannot be installed: npm error"),
        "{message}"
    );
    let message = world.message(&node, &source.replace("greeting@1", "https://x/y.tgz"));
    assert!(
        message.contains("script metadata: line 1: \"https://x/y.tgz\" is not a dep"),
        "{message}"
    );
    let off = world.engine("node", "dependencies.enabled = false");
    let message = world.message(&off, source);
    assert!(message.contains("dependencies.enabled is false"), "{message}");
}
