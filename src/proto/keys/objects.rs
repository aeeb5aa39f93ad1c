//! The keys of the objects that scripts keep.

use super::Keys;
use crate::proto::object::{Context, Field, ObjectType};

impl Keys {
    /// Sorted set, all of score 0: contexts that have objects, as key parts.
    pub fn object_contexts(&self) -> String {
        self.key(format_args!("meta:osis:contexts"))
    }

    /// Hash: how many objects a context has, type by type, and of all types under `%`.
    pub fn object_counts(&self, context: &Context) -> String {
        self.key(format_args!("meta:osis:count:{}", context.as_key_part()))
    }

    /// Hash: an object's fields as JSON, by its id.
    pub fn object_bodies(&self, context: &Context, of: &ObjectType) -> String {
        self.key(format_args!("meta:osis:body:{}:{of}", context.as_key_part()))
    }

    /// Hash: the store's own data about an object, by its id.
    pub fn object_heads(&self, context: &Context, of: &ObjectType) -> String {
        self.key(format_args!("meta:osis:head:{}:{of}", context.as_key_part()))
    }

    /// Sorted set, all of score 0: ids of objects.
    pub fn object_ids(&self, context: &Context, of: &ObjectType) -> String {
        self.key(format_args!("meta:osis:ids:{}:{of}", context.as_key_part()))
    }

    /// Sorted set, all of score 0: entries of the index on a field.
    pub fn object_index(&self, context: &Context, of: &ObjectType, field: &Field) -> String {
        self.key(format_args!("meta:osis:index:{}:{of}:{field}", context.as_key_part()))
    }

    /// Hash: the fields that have an index, each `ready`, or `@` and the last id that is in it.
    pub fn object_indexes(&self, context: &Context, of: &ObjectType) -> String {
        self.key(format_args!("meta:osis:state:{}:{of}", context.as_key_part()))
    }
}
