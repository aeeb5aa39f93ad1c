//! The only door by which a function comes into an interpreter: with its name, the names of its
//! parameters, a sentence and an example that runs. The types in a signature are those of the
//! function itself, so that no documentation can say others.

use std::any::TypeId;
use std::collections::BTreeMap;

use ::rhai::{
    Array, Blob, Dynamic, Engine, FLOAT, FnPtr, INT, ImmutableString, Map, RhaiNativeFunc,
};

/// Several functions about one matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name: `process`, `os`, `text` …
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub says: &'static str,
    /// In the order of the documentation.
    pub functions: Vec<Function>,
}

/// All that is known of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name that scripts call.
    pub name: &'static str,
    /// The type whose values it is called on, as `replacer.build()`; none for a plain function.
    pub of: Option<&'static str>,
    /// Every way to call it: `run(command: string, options: map) -> map`.
    pub signatures: Vec<String>,
    /// What it does, in a sentence.
    pub says: &'static str,
    /// A script that runs. Where its last line is `// → TEXT`, that is its output.
    pub example: &'static str,
    /// How many arguments it takes, the value that it is called on among them.
    pub arities: Vec<usize>,
}

impl Function {
    /// The name by which the documentation tells it from all others: `run`, `Command.execute`.
    pub fn full_name(&self) -> String {
        match self.of {
            Some(of) => format!("{of}.{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Registers functions with an interpreter and keeps what is said of them.
pub(super) struct Functions<'a> {
    engine: &'a mut Engine,
    groups: Vec<Group>,
    /// The types that the functions themselves bring.
    types: BTreeMap<TypeId, &'static str>,
}

impl<'a> Functions<'a> {
    pub(super) fn new(engine: &'a mut Engine) -> Self {
        Self { engine, groups: Vec::new(), types: BTreeMap::new() }
    }

    /// What has been registered.
    pub(super) fn finish(self) -> Vec<Group> {
        self.groups
    }

    /// The functions that follow are of this group.
    pub(super) fn group(&mut self, name: &'static str, says: &'static str) -> &mut Self {
        self.groups.push(Group { name, says, functions: Vec::new() });
        self
    }

    /// A type of values that scripts get and call functions on.
    pub(super) fn class<T: ::rhai::Variant + Clone>(&mut self, name: &'static str) -> &mut Self {
        self.engine.register_type_with_name::<T>(name);
        self.types.insert(TypeId::of::<T>(), name);
        self
    }

    /// Registers a function. The compiler holds that every parameter has a name.
    pub(super) fn add<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        name: &'static str,
        parameters: [&'static str; N],
        says: &'static str,
        example: &'static str,
        function: FUNC,
    ) -> Added<'_, 'a>
    where
        A: 'static,
        R: ::rhai::Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        let first = FUNC::param_types().first().copied();
        let of = first.and_then(|first| self.types.get(&first).copied());
        if let Some(group) = self.groups.last_mut() {
            let (signatures, arities) = (Vec::new(), Vec::new());
            group.functions.push(Function { name, of, signatures, says, example, arities });
        }
        let mut added = Added { functions: self, name };
        added.register(parameters, function);
        added
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

/// A function that has just been registered, to which more can be said.
pub(super) struct Added<'f, 'a> {
    functions: &'f mut Functions<'a>,
    name: &'static str,
}

impl Added<'_, '_> {
    /// Another way to call it.
    pub(super) fn or<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        mut self,
        parameters: [&'static str; N],
        function: FUNC,
    ) -> Self
    where
        A: 'static,
        R: ::rhai::Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        self.register(parameters, function);
        self
    }

    /// What it gives, where the type alone does not tell.
    pub(super) fn gives(self, what: &str) {
        if let Some(function) = self.functions.function() {
            for signature in &mut function.signatures {
                let call = signature.split(" -> ").next().unwrap_or_default();
                *signature = format!("{call} -> {what}");
            }
        }
    }

    fn register<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        parameters: [&'static str; N],
        function: FUNC,
    ) where
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
        let gives = match self.functions.type_name(TypeId::of::<R>()) {
            "()" => String::new(),
            name => format!(" -> {name}"),
        };
        let name = self.name;
        if let Some(entry) = self.functions.function() {
            let object = match entry.of {
                Some(_) if !named.is_empty() => {
                    named.remove(0);
                    format!("{}.", parameters[0])
                }
                _ => String::new(),
            };
            entry.signatures.push(format!("{object}{name}({}){gives}", named.join(", ")));
            entry.arities.push(N);
        }
        self.functions.engine.register_fn(name, function);
    }
}
