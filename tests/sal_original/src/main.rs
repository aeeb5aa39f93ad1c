//! Runs one script with the functions of the published SAL crates: `sal_original FILE`. `sal_original
//! --names` lists the functions that they register, as NAME/PARAMETERS.

use std::process::ExitCode;

use rhai::{Dynamic, Engine};

fn main() -> ExitCode {
    let Some(argument) = std::env::args_os().nth(1) else {
        eprintln!("usage: sal_original FILE | --names");
        return ExitCode::from(2);
    };
    let mut engine = Engine::new();
    if let Err(error) = register(&mut engine) {
        eprintln!("cannot register the functions: {error}");
        return ExitCode::from(2);
    }
    if argument == "--names" {
        let names = engine.collect_fn_metadata(
            None,
            |info| {
                Some(format!("{}/{}", info.metadata.name, info.metadata.num_params))
            },
            false,
        );
        names.iter().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    match engine.eval_file::<Dynamic>(argument.into()) {
        Ok(value) => {
            eprintln!("value: {value}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The order is the same as in the crate `sal-rhai`: the `which` of processes replaces the one of `os`.
fn register(engine: &mut Engine) -> Result<(), Box<rhai::EvalAltResult>> {
    sal_os::rhai::register_os_module(engine)?;
    sal_process::rhai::register_process_module(engine)?;
    sal_git::rhai::register_git_module(engine)?;
    sal_text::rhai::register_text_module(engine)?;
    sal_net::rhai::register_net_module(engine)?;
    sal_redisclient::rhai::register_redisclient_module(engine)
}
