//! The function names and parameters that existing scripts use. Changing one of them breaks scripts
//! outside of this project.

use super::*;

/// The functions of `sal`: `name(parameter types)`, with the type of the receiver before a dot.
const NAMES: &[&str] = &[
    "run(string)",
    "run(string, map)",
    "Command.silent()",
    "Command.ignore_error()",
    "Command.log()",
    "Command.env(string, string)",
    "Command.timeout(int)",
    "Command.timeout(float)",
    "Command.execute()",
    "run_command(string)",
    "run_silent(string)",
    "which(string)",
    "kill(string)",
    "process_list(string)",
    "process_get(string)",
    "copy(string, string)",
    "copy_bin(string)",
    "mv(string, string)",
    "exist(string)",
    "find_file(string, string)",
    "find_files(string, string)",
    "find_dir(string, string)",
    "find_dirs(string, string)",
    "delete(string)",
    "mkdir(string)",
    "file_size(string)",
    "rsync(string, string)",
    "chdir(string)",
    "file_read(string)",
    "file_write(string, string)",
    "file_write_append(string, string)",
    "cmd_ensure_exists(string)",
    "download(string, string, int)",
    "download_file(string, string, int)",
    "download_install(string, int)",
    "chmod_exec(string)",
    "env_get(string)",
    "ensure_dir(string)",
    "ensure_file(string)",
    "symlink(string, string)",
    "is_symlink(string)",
    "script_dir()",
    "package_install(string)",
    "package_remove(string)",
    "package_update()",
    "package_upgrade()",
    "package_list()",
    "package_search(string)",
    "package_is_installed(string)",
    "platform_is_osx()",
    "platform_is_linux()",
    "platform_is_arm()",
    "platform_is_x86()",
    "text_replacer_new()",
    "TextReplacerBuilder.pattern(string)",
    "TextReplacerBuilder.replacement(string)",
    "TextReplacerBuilder.regex(bool)",
    "TextReplacerBuilder.case_insensitive(bool)",
    "TextReplacerBuilder.and()",
    "TextReplacerBuilder.build()",
    "TextReplacer.replace(string)",
    "TextReplacer.replace_file(string)",
    "TextReplacer.replace_file_in_place(string)",
    "TextReplacer.replace_file_to(string, string)",
    "template_builder_open(string)",
    "TemplateBuilder.add_var(string, any)",
    "TemplateBuilder.add_vars(map)",
    "TemplateBuilder.render()",
    "TemplateBuilder.render_to_file(string)",
    "name_fix(string)",
    "path_fix(string)",
    "dedent(string)",
    "prefix(string, string)",
    "tcp_check(string, int)",
    "tcp_ping(string)",
    "http_check(string)",
    "http_status(string)",
    "http_wait(string, int)",
    "port_check_available(int)",
    "ssh_execute(string, string, string)",
    "ssh_execute_output(string, string, string)",
    "ssh_ping(string, string)",
    "git_tree_new(string)",
    "GitTree.list()",
    "GitTree.find(string)",
    "GitTree.get(string)",
    "GitRepo.path()",
    "GitRepo.has_changes()",
    "GitRepo.pull()",
    "GitRepo.reset()",
    "GitRepo.commit(string)",
    "GitRepo.push()",
    "git_clone(string)",
    "redis_ping()",
    "redis_set(string, any)",
    "redis_get(string)",
    "redis_del(string)",
    "redis_hset(string, string, any)",
    "redis_hget(string, string)",
    "redis_hgetall(string)",
    "redis_hdel(string, string)",
    "redis_rpush(string, any)",
    "redis_lpush(string, any)",
    "redis_llen(string)",
    "redis_lrange(string, int, int)",
    "systemd_list()",
    "systemd_status(string)",
    "systemd_start(string)",
    "systemd_stop(string)",
    "systemd_restart(string)",
    "systemd_enable(string)",
    "systemd_disable(string)",
    "systemd_logs(string, int)",
    "exec(string)",
    "json_parse(string)",
    "execute(string)",
    "Command.run()",
    "text_replacer_builder()",
    "replacer_new()",
    "template_open(string)",
    "name_fix_kubernetes(string)",
    "repeat(string, int)",
    "pad_left(string, int)",
    "pad_right(string, int)",
    "ensure(string)",
    "package_platform()",
    "package_set_debug(bool)",
    "platform_check_linux_x86()",
    "platform_check_macos_arm()",
    "net_tcp_check(string, int)",
    "net_tcp_ping(string)",
    "net_http_check(string)",
    "net_http_status(string)",
    "net_ssh_ping(string, string)",
    "http_ping(string)",
    "redis_reset()",
];

/// The functions of `osis`.
const NAMES_OF_OSIS: &[&str] = &[
    "osis_new(string)",
    "osis_set(string, map)",
    "osis_get(string, any)",
    "osis_exists(string, any)",
    "osis_delete(string, any)",
    "osis_list(string)",
    "osis_find(string, string)",
    "osis_batch(array)",
];

fn called(engine: &RhaiEngine) -> Vec<String> {
    let functions = engine.groups().iter().flat_map(|group| &group.functions);
    functions
        .flat_map(|function| {
            let name = &function.full_name;
            function
                .signatures
                .iter()
                .map(move |signature| format!("{name}({})", parameter_types(signature).join(", ")))
        })
        .collect()
}

#[test]
fn every_function_that_scripts_use_exists_with_its_parameters() {
    for (engine, names) in [(sal(), NAMES), (&osis(), NAMES_OF_OSIS)] {
        let called = called(engine);
        for name in names.iter().copied() {
            assert!(called.iter().any(|call| call == name), "{name} is missing in {called:#?}");
        }
    }
}

#[test]
fn results_have_the_fields_that_scripts_read() {
    let world = ExampleWorld::new();
    for (source, expected) in [
        ("run_command(\"true\")", "code stderr stdout success"),
        ("run(\"exit 3\", #{die: false, silent: true, log: false})", "code stderr stdout success"),
        ("process_list(\"\")[0]", "cpu memory name pid"),
    ] {
        let keys = format!("let keys = ({source}).keys(); keys.sort(); keys");
        let keys = world.run(sal(), &keys).unwrap_or_else(|failure| panic!("{source}: {failure}"));
        for field in expected.split(' ') {
            assert!(keys.contains(&format!("\"{field}\"")), "{source}: {field} is not in {keys}");
        }
    }
}
