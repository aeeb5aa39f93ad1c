//! The registration table: every function comes with its name, the names of its parameters, a
//! sentence and an example that runs. The types of a signature come from the Rust function, so the
//! documentation cannot differ from it.

use std::any::TypeId;
use std::collections::BTreeMap;

use ::rhai::{
    Array, Blob, Dynamic, Engine, FLOAT, FnPtr, INT, ImmutableString, Map, RhaiNativeFunc,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Functions of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name: `process`, `os`, `text` …
    pub name: &'static str,
    pub summary: &'static str,
    pub functions: Vec<Function>,
}

/// A function of scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FunctionDocument")]
pub struct Function {
    /// Its name, after its type if it has one.
    #[serde(rename = "name")]
    pub full_name: String,
    /// The group of its documentation.
    pub group: &'static str,
    /// Its signatures.
    pub signatures: Vec<String>,
    /// Its summary.
    #[serde(rename = "says")]
    pub summary: &'static str,
    /// An example.
    // A last line `// → TEXT` gives its output.
    pub example: &'static str,
    #[serde(skip)]
    pub name: &'static str,
    /// The type of the value it is called on, as in `replacer.build()`; `None` for a plain function.
    #[serde(skip)]
    pub receiver: Option<&'static str>,
    /// The numbers of its arguments, including the receiver.
    #[serde(skip)]
    pub arities: Vec<usize>,
}

/// Registers functions with an interpreter and collects their documentation.
pub(super) struct Functions<'a> {
    engine: &'a mut Engine,
    groups: Vec<Group>,
    /// The types that functions add, with their names in scripts.
    types: BTreeMap<TypeId, &'static str>,
}

impl<'a> Functions<'a> {
    pub(super) fn new(engine: &'a mut Engine) -> Self {
        Self { engine, groups: Vec::new(), types: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> Vec<Group> {
        self.groups
    }

    /// Starts a group; the functions that follow belong to it.
    pub(super) fn group(&mut self, name: &'static str, summary: &'static str) {
        self.groups.push(Group { name, summary, functions: Vec::new() });
    }

    pub(super) fn class<T: ::rhai::Variant + Clone>(&mut self, name: &'static str) {
        self.engine.register_type_with_name::<T>(name);
        self.types.insert(TypeId::of::<T>(), name);
    }

    /// Registers a function. The compiler checks that every parameter has a name.
    pub(super) fn add<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        name: &'static str,
        parameters: [&'static str; N],
        summary: &'static str,
        example: &'static str,
        function: FUNC,
    ) -> Added<'_, 'a>
    where
        A: 'static,
        R: ::rhai::Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        let first = FUNC::param_types().first().copied();
        let receiver = first.and_then(|first| self.types.get(&first).copied());
        if let Some(group) = self.groups.last_mut() {
            group.functions.push(Function {
                full_name: receiver.map_or_else(|| name.to_owned(), |of| format!("{of}.{name}")),
                group: group.name,
                signatures: Vec::new(),
                summary,
                example: example.trim(),
                name,
                receiver,
                arities: Vec::new(),
            });
        }
        Added { functions: self, name }.overload(parameters, function)
    }

    fn type_name(&self, id: TypeId) -> &'static str {
        let known = [
            (TypeId::of::<ImmutableString>(), "string"),
            (TypeId::of::<String>(), "string"),
            (TypeId::of::<&str>(), "string"),
            (TypeId::of::<str>(), "string"),
            (TypeId::of::<INT>(), "int"),
            (TypeId::of::<FLOAT>(), "float"),
            (TypeId::of::<bool>(), "bool"),
            (TypeId::of::<Map>(), "map"),
            (TypeId::of::<Array>(), "array"),
            (TypeId::of::<Blob>(), "blob"),
            (TypeId::of::<FnPtr>(), "function"),
            (TypeId::of::<Dynamic>(), "any"),
            (TypeId::of::<()>(), "()"),
        ];
        let known = known.iter().find(|(known, _)| *known == id).map(|(_, name)| *name);
        known.or_else(|| self.types.get(&id).copied()).unwrap_or("value")
    }

    fn function(&mut self) -> Option<&mut Function> {
        self.groups.last_mut().and_then(|group| group.functions.last_mut())
    }
}

/// A function that was just registered, for further overloads.
pub(super) struct Added<'f, 'a> {
    functions: &'f mut Functions<'a>,
    name: &'static str,
}

impl Added<'_, '_> {
    pub(super) fn overload<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        self,
        parameters: [&'static str; N],
        function: FUNC,
    ) -> Self
    where
        A: 'static,
        R: ::rhai::Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        let types = FUNC::param_types();
        let mut named: Vec<String> = parameters
            .iter()
            .zip(&types)
            .map(|(name, id)| format!("{name}: {}", self.functions.type_name(*id)))
            .collect();
        let returns = match self.functions.type_name(TypeId::of::<R>()) {
            "()" => String::new(),
            name => format!(" -> {name}"),
        };
        let name = self.name;
        if let Some(entry) = self.functions.function() {
            let object = match entry.receiver {
                Some(_) if !named.is_empty() => {
                    named.remove(0);
                    format!("{}.", parameters[0])
                }
                _ => String::new(),
            };
            entry.signatures.push(format!("{object}{name}({}){returns}", named.join(", ")));
            entry.arities.push(N);
        }
        self.functions.engine.register_fn(name, function);
        self
    }

    /// Sets the documented return type, where the Rust type is too general.
    pub(super) fn returns(self, type_name: &str) {
        if let Some(function) = self.functions.function() {
            for signature in &mut function.signatures {
                let call = signature.split(" -> ").next().unwrap_or_default();
                *signature = format!("{call} -> {type_name}");
            }
        }
    }
}
