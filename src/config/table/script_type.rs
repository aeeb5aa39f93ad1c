//! The keys of `[type.NAME]` and of its packages and limits.

use crate::config::key_row::{DAY, TEN_YEARS, key_table};

key_table! {
    /// Script types. A table with the name of a type that comes with Hero changes that type; a missing key keeps
    /// its default. Any other name defines another type. Names are a letter of a-z, then at most 31 of a-z, 0-9 and
    /// `_`.
    ///
    ///     [type.perl]
    ///     engine = "command"
    ///     command = ["/usr/bin/perl", "{script}"]
    ///     extension = ".pl"
    ///     check = ["/usr/bin/perl", "-c", "{script}"]
    ///     output_overflow = "fail"
    TYPE = "type.NAME";

    /// The engine that runs the scripts: `osis`, Rhai without system access; `sal`, Rhai with system access: files,
    /// processes, the network; `heroscript`, HeroScript, whose actions call functions in Rhai without system
    /// access; or `command`, a program, in a process of its own.
    engine: OneOf(&["osis", "sal", "heroscript", "command"]);

    /// The farthest that a job of the type goes from an instance or group without live actors, unless it has one of
    /// its own: `none`, `group` (from an instance to its group) or `type`.
    fallback: OneOf(&["none", "group", "type"]);

    /// The failed jobs that become dead letters: `retried` for jobs with retries that used up their attempts, `all`
    /// for jobs without retries too. A job that took down too many actors always becomes one.
    dead_letters: OneOf(&["retried", "all"]);

    /// For a type whose scripts are not sandboxed: the callers of the API, of the page and of the agents' door,
    /// hero-mcp(1), who may use it, by their names; `*` for all. A token that names the type needs no entry. Not
    /// sandboxed are `sal`, unless `[sal]` narrows both `read` and `write`, and a type with `sandbox.enabled =
    /// false`. The command line does not ask: it has the rights of the Redis login.
    who: Texts;

    /// The jobs that a running script of the type may submit: script types, such as `python`, or one group of a type,
    /// such as `bash:web`. Empty: none. Such a job has the caller and the context of the job that submits it, and
    /// everything else that its own type may use, such as secrets and the network.
    may_submit: Texts;

    /// The keys, `[keys.NAME]`, of which one must have signed each job of the type. The actor checks that right before
    /// the script runs, so that nobody who writes to Redis can change what runs: `hero submit --sign`. Empty: none.
    require_signature: Texts;

    /// The file of a script of the type that runs before each attempt of its jobs, to set up what they need. It runs as
    /// the job does, with its environment and sandbox, and its lines stand in the job's log. If it fails, so does
    /// the attempt. Empty: none.
    before: File;

    /// The file of a script of the type that runs after each attempt, however it ended, with the outcome as JSON in
    /// `HERO_OUTCOME`. If it fails, the log of the job and the journal say so, and nothing else changes. Empty: none.
    after: File;

    /// The longest time of one such script. `before` counts towards the timeout of the job as well.
    hook_timeout: Duration(10, DAY);

    /// The time after its submission, or after its `run_at`, within which a job of the type is expected to end, unless it
    /// has an `expect_within` of its own. One that takes longer is marked as late, told to notifications, and runs on. The
    /// supervisors' configuration counts, and gives it to each job when it is submitted or adopted. `0s`: none.
    expect_within: Duration(0, TEN_YEARS);

    /// The time of an attempt after which a job of the type is marked as slow and told to notifications, unless it has a
    /// `slow_after` of its own. The supervisors' configuration counts, for each job that an actor claims. `0s`: none.
    slow_after: Duration(0, TEN_YEARS);

    /// For `osis` and `sal`: the folders of the modules that scripts import. `import "tools" as t;` reads
    /// `tools.rhai` from the first folder that has it, again when it has changed. For `heroscript`: the folders of
    /// the functions. The action `!!person.define` calls `person_define(parameters)` of the file `person.rhai`.
    /// ---
    /// A link out of the folder is rejected. A process that is sandboxed (`actor.sandbox`) needs a restart to use
    /// other folders. The functions of `heroscript` are read at the start and at a reload.
    modules: Folders;

    /// For `osis` and `sal`: allows `eval("text")`, which runs a text as a part of the script.
    eval: Flag;

    /// For `command`, as all that follows: the program and its arguments. `{script}` must be in one of them and
    /// stands for the script's file, `{binary}` for the program that `compile` builds. A program without a path is
    /// searched in PATH; so is one whose path does not exist, by its file name.
    /// ---
    /// The process gets the script's variables, the job's identity in `HERO_JOB_ID`, `HERO_CALLER_ID`,
    /// `HERO_CONTEXT_ID`, `HERO_ATTEMPT` and `HERO_ATTEMPTS_LEFT`, the outputs of its prerequisites, if any, in the
    /// JSON file that `HERO_INPUTS` names, and a private folder, which is its HOME and TMPDIR and is deleted
    /// afterwards. It can write lines of JSON to the descriptor whose number is in `HERO_FD`:
    ///
    /// - `{"progress": 0.4, "text": "reading"}`, the progress, from 0 to 1, with an optional text. A terminal that
    ///   waits for the job shows a bar, and `hero job show` prints it.
    /// - `{"log": "a line"}`, a line for the job's log.
    /// - `{"output": {"any": "value"}}`, the job's output, instead of standard output; a string is taken as plain
    ///   text, all else as JSON.
    ///
    /// Other lines are ignored, and the job's log says how many there were.
    command: Texts;

    /// The extension of the script's file. It also selects the type of a script that is given as a file on the
    /// command line.
    extension: Text;

    /// Further extensions that select the type; the script's file keeps the one of the submitted file.
    more_extensions: Texts;

    /// Environment variables of every script of the type. A job's own override them.
    env: Map;

    /// The working directory of scripts. Empty: their own private folder.
    cwd: FolderOrNone;

    /// The compiler and its arguments, which build the program `{binary}` from `{script}`; `command` then names
    /// `{binary}`. The program is kept in `job.cache_dir`, so each script is compiled once. Empty: none.
    compile: Texts;

    /// A program and its arguments that check `{script}` without running it, and fail if it has errors.
    /// `hero script check` and `hero submit --check` run it where they are called. Empty: none.
    check: Texts;

    /// The fate of an output over `job.output_size_max`. The default is `job.output_overflow`.
    output_overflow: OneOf(&["truncate", "fail"]);

    /// For Python, a command whose program is named `python*`: keeps a warm interpreter, and each job is a fork of
    /// it. Takes some 12 MB. The default for types of your own is false.
    warm: Flag;

    /// The modules that the warm interpreter imports.
    preload: Texts;
}
