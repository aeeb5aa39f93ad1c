//! The Python package of `clients/python`.

use std::path::Path;
use std::process::{Command, Output};

use hero::proto::job::SETTINGS;

use crate::support::{Hero, Redis, files_below};

/// The interpreter of Debian, which has Debian's `python3-redis`.
const PYTHON: &str = "/usr/bin/python3";
pub(super) const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");

/// Runs Python with the package in its path.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test")]
fn python(args: &[&str], env: &[(&str, String)]) -> Output {
    Command::new(PYTHON)
        .args(args)
        .env("PYTHONPATH", format!("{PACKAGE}/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("python3 is installed")
}

/// Runs these files of the package's tests.
#[track_caller]
fn tests_pass(files: &str, env: &[(&str, String)]) {
    let folder = format!("{PACKAGE}/tests");
    let output = python(&["-m", "unittest", "discover", "-s", &folder, "-p", files], env);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("Ran 0 tests"),
        "{files} (`make deps-test` installs python3-redis):\n{said}"
    );
}

#[test]
fn its_verbs_work_over_redis_and_over_the_api() {
    let redis = Redis::start();
    let address = format!("unix://{}", redis.folder().join("api.sock").display());
    // Hero serves another circle than the tests: only then its access list has keys of rhailib.
    let hero = Hero::on(&redis)
        .set("api.listen", &format!("[{address:?}]"))
        .set("supervisor.rhailib_circles", r#"[{ circle = "other", type = "osis" }]"#);
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    let _python = hero.actor("python-default-1").start();
    let env = [("HERO_TEST_REDIS", redis.url()), ("HERO_TEST_API", address)];
    tests_pass("test_redis.py", &env);
    tests_pass("test_api.py", &env);
    tests_pass("test_readme.py", &env);
}

#[test]
fn it_sees_all_shards_over_the_api() {
    let redis = Redis::start();
    let address = format!("unix://{}", redis.folder().join("api.sock").display());
    let hero =
        Hero::on(&redis).set("api.listen", &format!("[{address:?}]")).set("redis.shards", "2");
    let _supervisor = hero.supervisor().start();
    let program = "import sys; from hero_client import Client, JobSpec\n\
        client = Client(sys.argv[1])\n\
        ids = [client.submit(JobSpec('osis', '1', shard_key=str(key))) for key in range(8)]\n\
        assert {one.startswith('s1-') for one in ids} == {True, False}, ids\n\
        assert {job.id for job in client.list().jobs} == set(ids)\n\
        assert [client.get(one).id for one in ids] == ids\n\
        for one in ids:\n\
        \x20   key = client.get(one).fields['shard_key']\n\
        \x20   first, after = JobSpec('osis', '1', shard_key=key), JobSpec('osis', '1', prerequisites=['first'])\n\
        \x20   graph = client.graph({'after': after, 'first': first})\n\
        \x20   assert {a.startswith('s1-') for a in graph.values()} == {one.startswith('s1-')}, graph\n\
        \x20   for a in graph.values(): client.stop(a)\n\
        \x20   for a in graph.values(): client.delete(a)\n\
        for one in ids: client.stop(one)\n\
        for one in ids: client.delete(one)\n\
        assert not client.list().jobs";
    let output = python(&["-c", program, &address], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn its_parts_work_without_a_daemon() {
    tests_pass("test_jobs.py", &[]);
    tests_pass("test_transport.py", &[]);
    tests_pass("test_follow.py", &[]);
}

#[test]
fn its_types_are_those_of_the_api() {
    let output = python(&[&format!("{PACKAGE}/tools/api_types.py"), "--check"], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn it_knows_every_setting_of_a_job() {
    let program = "import dataclasses, hero_client; \
                   print(*sorted(one.name for one in dataclasses.fields(hero_client.JobSpec)))";
    let output = python(&["-c", program], &[]);
    let mut expected: Vec<&str> = SETTINGS.iter().map(|setting| setting.field).collect();
    expected.sort_unstable();
    let known = String::from_utf8_lossy(&output.stdout);
    let known: Vec<&str> = known.split_whitespace().collect();
    assert_eq!(known, expected, "JobSpec in clients/python/src/hero_client/_jobs.py");
}

#[test]
fn it_is_built_and_installed_from_its_sources_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, target) = (folder.path().join("out"), folder.path().join("installed"));
    std::fs::create_dir(&out).expect("a folder");
    let before = files_below(Path::new(PACKAGE));
    let build = "import sys, zipfile; sys.path.insert(0, sys.argv[1] + '/tools'); import backend\n\
        print(backend.build_sdist(sys.argv[2]))\n\
        wheel = backend.build_wheel(sys.argv[2])\n\
        zipfile.ZipFile(sys.argv[2] + '/' + wheel).extractall(sys.argv[3])\n\
        print(wheel)";
    let (out, target) = (out.to_str().expect("UTF-8"), target.to_str().expect("UTF-8"));
    let done = python(&["-W", "error", "-c", build, PACKAGE, out, target], &[]);
    let said = String::from_utf8_lossy(&done.stdout);
    let expected = "hero_client-0.2.0.tar.gz\nhero_client-0.2.0-py3-none-any.whl\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(files_below(Path::new(PACKAGE)), before);
    // It is whole, and its links lead somewhere.
    let used = "import sys; sys.path[0] = sys.argv[1]; import hero_client\n\
        from importlib.metadata import distribution\n\
        found = distribution('hero-client')\n\
        assert hero_client.__file__.startswith(sys.argv[1]), hero_client.__file__\n\
        assert found.read_text('METADATA').count('](..') == 0\n\
        assert found.requires == ['redis>=4.2; extra == \"redis\"'], found.requires\n\
        assert {'hero_client/py.typed', 'hero_client/api.py'} <= {str(one) for one in found.files}";
    let done = python(&["-W", "error", "-c", used, target], &[("PYTHONPATH", target.to_owned())]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
