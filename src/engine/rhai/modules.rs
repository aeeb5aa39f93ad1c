//! The modules of the configured folders, files `NAME.rhai`: those that scripts import, and those whose
//! functions the actions of `HeroScript` call.
//!
//! A file is read and compiled when it is first imported, and again when it has changed. Each
//! import evaluates it for its script, so constants of one job never reach another.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ::rhai::{
    AST, Engine, EvalAltResult, GlobalRuntimeState, Module, ModuleResolver, Position, Scope, Shared,
};
use nix::fcntl::OFlag;

use super::interpreter::compile;
use crate::error::reason;

const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The limit of compiled files; beyond it all are dropped and read again.
const FILES_MAX: usize = 256;
/// The limit of modules that import modules. All of them share one stack.
const IMPORT_DEPTH_MAX: usize = 8;

thread_local! {
    /// The files that are being imported, the outermost first: an import never leaves its thread.
    static IMPORTING: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// The folders of a script type with the files that were compiled so far. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Modules {
    folders: Arc<[PathBuf]>,
    compiled: Arc<RwLock<HashMap<PathBuf, (Version, CompiledModule)>>>,
}

/// The state of a file, which a change of its text changes.
type Version = (u64, u64, u64, i64, i64, i64, i64);

#[derive(Debug, Clone)]
pub(super) struct CompiledModule {
    pub(super) file: PathBuf,
    /// Its statements and functions. Its source is the path of its file.
    pub(super) code: Arc<AST>,
}

#[derive(Debug)]
pub(super) enum ModuleError {
    Unreadable(String),
    Invalid { file: PathBuf, error: Box<EvalAltResult> },
}

impl Modules {
    /// Creates the modules in `folders`; a name is looked up in their order.
    pub(super) fn new(folders: &[PathBuf]) -> Self {
        Self { folders: folders.into(), compiled: Arc::default() }
    }

    /// Returns the module `name`, compiled from its file as it is now.
    pub(super) fn load(&self, engine: &Engine, name: &str) -> Result<CompiledModule, ModuleError> {
        let failed = ModuleError::Unreadable;
        let file = self.find(name).map_err(failed)?;
        let (mut opened, version) = open(&file).map_err(failed)?;
        let compiled = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = compiled.get(&file).filter(|(known, _)| *known == version) {
            return Ok(known.clone());
        }
        drop(compiled);
        let text = read(&mut opened).map_err(failed)?;
        let mut code = compile(engine, &Scope::new(), &text).map_err(|error| {
            ModuleError::Invalid { file: file.clone(), error: Box::new(error.into()) }
        })?;
        code.set_source(file.to_string_lossy().into_owned());
        let module = CompiledModule { file: file.clone(), code: Arc::new(code) };
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= FILES_MAX {
            compiled.clear();
        }
        compiled.insert(file, (version, module.clone()));
        Ok(module)
    }

    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let path = Path::new(name);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || name.contains('\0') || !is_plain {
            return Err("a module has a plain name, or a path inside its folder without ..".into());
        }
        let file_name = if path.extension().is_some_and(|extension| extension == "rhai") {
            name.to_owned()
        } else {
            format!("{name}.rhai")
        };
        if self.folders.is_empty() {
            return Err("no folder has modules; type.NAME.modules names the folders".to_owned());
        }
        for folder in self.folders.iter() {
            let Ok(file) = folder.join(&file_name).canonicalize() else { continue };
            // A link may lead elsewhere.
            if folder.canonicalize().is_ok_and(|folder| file.starts_with(folder)) {
                return Ok(file);
            }
            return Err(format!("its file is a link out of {}", folder.display()));
        }
        let folders: Vec<String> =
            self.folders.iter().map(|folder| folder.display().to_string()).collect();
        let folders = folders.join(", ");
        Err(format!("no {file_name} in {folders}; type.NAME.modules has the folders"))
    }

    fn evaluate(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        name: &str,
        position: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        let thrown = |text: String| EvalAltResult::ErrorRuntime(text.into(), position);
        let in_module = |file: &Path, error| {
            EvalAltResult::ErrorInModule(file.to_string_lossy().into_owned(), error, position)
        };
        let module = self.load(engine, name).map_err(|error| match error {
            ModuleError::Unreadable(why) => thrown(format!("import {name}: {why}")),
            ModuleError::Invalid { file, error } => in_module(&file, error),
        })?;
        let _importing = Importing::begin(&module.file)
            .map_err(|why| thrown(format!("import {name}: {why}")))?;
        let evaluated =
            Module::eval_ast_as_new_raw(engine, &mut Scope::new(), global, &module.code);
        match evaluated {
            Ok(mut evaluated) => {
                evaluated.set_id(module.file.to_string_lossy().into_owned());
                Ok(evaluated.into())
            }
            // A stop stays what it is, so that no script can catch it.
            Err(error) if error.is_system_exception() => Err(error),
            Err(error) => Err(in_module(&module.file, error).into()),
        }
    }
}

impl ModuleResolver for Modules {
    fn resolve(
        &self,
        engine: &Engine,
        _: Option<&str>,
        name: &str,
        position: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        self.evaluate(engine, &mut engine.new_global_runtime_state(), name, position)
    }

    /// Keeps the count of operations, modules and calls of the script.
    fn resolve_raw(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        _: &mut Scope<'_>,
        name: &str,
        position: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        self.evaluate(engine, global, name, position)
    }
}

struct Importing;

impl Importing {
    fn begin(file: &Path) -> Result<Self, String> {
        IMPORTING.with_borrow_mut(|importing| {
            if importing.iter().any(|outer| outer == file) {
                return Err("the module imports itself; remove that import".to_owned());
            }
            if importing.len() >= IMPORT_DEPTH_MAX {
                return Err(format!(
                    "modules import each other more than {IMPORT_DEPTH_MAX} levels deep"
                ));
            }
            importing.push(file.to_owned());
            Ok(Self)
        })
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        IMPORTING.with_borrow_mut(Vec::pop);
    }
}

/// Opens a regular file. A pipe could block past the deadline of the job.
fn open(file: &Path) -> Result<(File, Version), String> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits());
    let opened = options.open(file).map_err(|error| reason(&error))?;
    let metadata = opened.metadata().map_err(|error| reason(&error))?;
    if !metadata.is_file() {
        return Err(format!("{} is not a regular file", file.display()));
    }
    Ok((opened, version(&metadata)))
}

fn version(of: &Metadata) -> Version {
    (of.dev(), of.ino(), of.size(), of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec())
}

fn read(file: &mut File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("its file is larger than {FILE_BYTES_MAX} bytes; split it"));
    }
    String::from_utf8(bytes).map_err(|_| "its file is not UTF-8 text".to_owned())
}
