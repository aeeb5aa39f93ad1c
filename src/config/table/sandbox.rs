//! The keys of `[type.NAME.sandbox]`.

use super::row::{ANY, PIB, TEN_YEARS, key_table};

key_table! {
    /// The sandbox of the scripts of a type with the engine `command` and of all processes that they start. By
    /// default they read the system's programs and libraries and write their own folder, which is deleted
    /// afterwards. The log of a script that failed since the sandbox refused it something names the key that would
    /// allow it.
    SANDBOX = "type.NAME.sandbox";

    /// Switches the sandbox on. Without it a script may do what the daemon's user may.
    enabled: Flag;

    /// The part of the sandbox that the kernel must enforce: `full` needs Linux 6.12, `basic` is without signals
    /// and abstract sockets, `none` accepts any kernel. `hero check` shows what this kernel enforces; an actor with
    /// less does not start.
    require: OneOf(&["none", "basic", "full"]);

    /// More folders and files that may be read, with programs that may be started. Symbolic links are resolved.
    read: Folders;

    /// More folders and files that may be written. They are shared between jobs. Values, arrays and shared memory
    /// of Python's multiprocessing need `/dev/shm` here.
    write: Folders;

    /// Allows network access, to this machine too.
    network: Flag;

    /// TCP ports that may be reached while network is false, such as `[53, 443]`; 53 allows name resolution. Needs
    /// Linux 6.7; an older kernel allows none.
    ports: Numbers(1, 65_535);

    /// Allows Unix sockets with a path.
    unix_sockets: Flag;

    /// Allows changing file modes. The kernel cannot restrict this to folders: a script could make a folder of the
    /// daemon inaccessible to the daemon. Without it, copying files together with their modes fails. The set-uid
    /// and set-gid bits are never set.
    chmod: Flag;

    /// The processor time of one process, in whole seconds; `0s`: no limit but the job's timeout.
    cpu: Duration(0, TEN_YEARS);

    /// The memory of one process. The kernel refuses more private memory; shared memory is measured twice a second,
    /// and a process with more ends the job. `0B`: no limit.
    memory: Size(0, PIB);

    /// The address space of one process, which is more than the memory it uses: node reserves hundreds of GiB.
    /// `0B`: no limit.
    address_space: Size(0, PIB);

    /// Processes and threads of the daemon's user, over all its units; 0: no limit. For root the processes of each
    /// job, checked twice a second.
    processes: Number(0, 1 << 22);

    /// Open files of one process.
    open_files: Number(16, 1 << 20);

    /// The largest file; `0B`: no limit.
    file_size: Size(0, ANY);

    /// The size of the job's own folder and of its open files without a name, such as files in memory; checked
    /// twice a second; `0B`: no limit.
    disk: Size(0, ANY);

    /// The memory of a job as a whole: all its processes, and its files in memory file systems; `0B`: no limit.
    /// This and the next need a control group that is delegated to the unit, with `Delegate=`, as the packaged unit
    /// does; the daemon's log says whether jobs have one.
    /// ---
    /// A job that exceeds it is killed as a whole, and its `limit` is `job memory`. A job that the kernel kills
    /// since its unit, a slice of it or the machine has no more memory goes back to its queue, as after a crash of
    /// its actor.
    job_memory: Size(0, PIB);

    /// Processes and threads of a job as a whole; 0: no limit.
    job_processes: Number(0, 1 << 22);

    /// The memory that a job may ask for with `--memory` and `--job-memory`, if that is more than `memory` and
    /// `job_memory`. Less it may always ask for. With `--memory` alone, the whole job has no more either.
    memory_max: Size(0, PIB);

    /// The processor time that a job may ask for with `--cpu-time`, if that is more than `cpu`.
    cpu_max: Duration(0, TEN_YEARS);

    /// Allows a job to ask for all of the network, with `--network all`.
    network_max: Flag;

    /// The TCP ports that a job may ask for with `--network`, beside `ports`.
    ports_max: Numbers(1, 65_535);
}
