//! The keys of `[osis]`.

use crate::config::key_row::key_table;

key_table! {
    /// The indexed fields of each object type. The supervisor builds the index of a new field, and removes one that
    /// no supervisor has declared for ten minutes, so supervisors can be reconfigured one after the other;
    /// `hero osis reindex` does both at once.
    ///
    ///     osis.index.person = ["email", "age", "address.city"]
    ///
    /// Where `amqp.url` is set, the indexes of log records are declared too. A supervisor on another machine
    /// declares them so:
    ///
    ///     osis.index.msLogs = ["time", "level", "root", "chain"]
    /// ---
    /// A query that needs an index earlier helps to build it, and fails after two seconds if it is still
    /// incomplete.
    INDEX = "osis.index";
}

key_table! {
    /// The contexts that the scripts of a caller may use besides their own, with `osis_use`. The caller is the name
    /// that the job gives and is not verified: Redis decides who may submit jobs.
    ///
    ///     osis.access.alice = ["shared"]
    ACCESS = "osis.access";
}

key_table! {
    /// A declared type of objects. Scripts get the functions `osis_NAMESPACE_NAME_new`, `_set`, `_get`, `_exists`,
    /// `_delete`, `_list` and `_find`, and the fields of each stored object are checked.
    ///
    ///     osis.schema.project.task.fields = { title = "string", status = ["open", "done"] }
    ///     osis.schema.project.task.required = ["title"]
    ///     osis.schema.project.task.text = ["title"]
    SCHEMA = "osis.schema.NAMESPACE.NAME";

    /// The type of each field: `any`, `bool`, `float`, `int`, `map`, `string` or `time`, one of these in brackets
    /// for an array, or an array of the strings that are allowed.
    fields: Form;

    /// The fields that an object must have.
    required: Texts;

    /// The fields whose words have an index, for `osis_NAMESPACE_NAME_find`.
    text: Texts;
}

key_table! {
    /// Groups of callers; `@NAME` stands for the callers of another group.
    ///
    ///     osis.groups.admins = ["anna"]
    ///     osis.groups.editors = ["alice", "@admins"]
    ///     osis.groups.guests = ["bob"]
    GROUPS = "osis.groups";
}

key_table! {
    /// The groups that may read, or read and write, the objects of the declared types of a namespace. Each right
    /// includes those after it; `admin` gives no more than `write`, as groups are changed in the configuration. A
    /// namespace without this table is open to every caller.
    ///
    ///     osis.rights.project = { admin = ["admins"], write = ["editors"], read = ["guests"] }
    RIGHTS = "osis.rights.NAMESPACE";

    /// The groups with each right.
    admin: Texts;
    write: Texts;
    read: Texts;
}
