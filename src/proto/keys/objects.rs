//! The keys of the objects that scripts keep.

use super::spell;
use crate::proto::object::{Context, Field, ObjectType};

spell! {
    /// Sorted set, all of score 0: contexts that have objects, as key parts.
    object_contexts() = "meta:osis:contexts";

    /// Hash: how many objects a context has, type by type, and of all types under `%`.
    object_counts(context: &Context) = "meta:osis:count:{}", context.as_key_part();

    /// Hash: the store's own data about an object, by its id.
    object_heads(context: &Context, of: &ObjectType) = "meta:osis:head:{}:{of}", context.as_key_part();

    /// Sorted set, all of score 0: ids of objects.
    object_ids(context: &Context, of: &ObjectType) = "meta:osis:ids:{}:{of}", context.as_key_part();

    /// Sorted set, all of score 0: entries of the index on a field.
    object_index(context: &Context, of: &ObjectType, field: &Field) =
        "meta:osis:index:{}:{of}:{field}", context.as_key_part();

    /// Hash: the fields that have an index, each `ready`, or `@` and the last id that is in it.
    object_indexes(context: &Context, of: &ObjectType) = "meta:osis:state:{}:{of}", context.as_key_part();
}
