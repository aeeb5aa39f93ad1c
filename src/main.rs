//! The program `hero`: parses the arguments, calls the library, prints the error, returns the
//! exit code.

use std::process::ExitCode;

use hero::cli::{Cli, print_error};

fn main() -> ExitCode {
    let cli = match Cli::of_args(std::env::args_os()) {
        Ok(cli) => cli,
        // `--help` and `--version` arrive here too, with exit code 0.
        Err(usage) => {
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    cli.run().unwrap_or_else(|error| {
        print_error(&error);
        error.exit.into()
    })
}
