//! `hero run-script`: runs a published script and waits for its end, as `hero exec --uses` does.

use std::process::ExitCode;

use clap::{Arg, ArgAction, Args, CommandFactory};

use super::exec::{Exec, ExecOptions};
use super::input::parsed;
use super::job_options::{FurtherOptions, JobOptions};
use super::window_options::WindowOptions;
use super::{Cli, Global, output, published};
use crate::error::Error;
use crate::proto::named_script::ScriptUse;

/// Run a published script and print its output; its log goes to standard error meanwhile
#[derive(Debug, Args)]
#[command(override_usage = "hero run-script [OPTIONS] <NAME[@VERSION]> [-- <ARG>...]")]
#[command(disable_help_flag = true)]
#[command(mut_args(without_other_scripts))]
#[command(after_help = "Examples:\n  hero run-script deploy --param host=web1 --param count=3\n  \
                        hero run-script deploy@3 -- web1\n  hero run-script --explain deploy --param host=web1\n  \
                        hero run-script --help deploy\n\n\
                        It is hero exec --uses NAME; hero submit --uses NAME does not wait. The parameters of a script \
                        are checked first.")]
pub(super) struct RunScript {
    /// The script, NAME or NAME@VERSION; by default its latest version
    #[arg(
        id = "published",
        value_name = "NAME[@VERSION]",
        required_unless_present = "help_of_script"
    )]
    script: Option<String>,
    #[command(flatten)]
    further: FurtherOptions,
    #[command(flatten)]
    how: ExecOptions,
    /// Print help; with NAME, the parameters of the script
    #[arg(id = "help_of_script", short = 'h', long = "help", action = ArgAction::SetTrue)]
    help: bool,
}

fn without_other_scripts(option: Arg) -> Arg {
    let is_other = ["uses", "type", "check", "extension"].contains(&option.get_id().as_str());
    let option = if is_other { option.hide(true) } else { option };
    WindowOptions::bound_to("EveryOptions", option)
}

impl RunScript {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let Some(script) = self.script else {
            let mut command = Cli::command();
            command.build();
            let own = command.find_subcommand_mut("run-script");
            let help = own.map(|own| own.render_long_help().to_string()).unwrap_or_default();
            output::text(&help)?;
            return Ok(ExitCode::SUCCESS);
        };
        let used: ScriptUse = parsed(&script)?;
        if self.help {
            let client = global.client()?;
            let found = client.scripts().get(&used).await?;
            let about = crate::proto::text::escape_lines(&found.of.definition.description);
            let about = if about.is_empty() { about } else { format!("{about}\n\n") };
            output::text(&format!("{about}{}", published::parameters(&found)))?;
            return Ok(ExitCode::SUCCESS);
        }
        let options = JobOptions::of_script(&used, self.further);
        Box::pin(Exec { options, how: self.how }.run(global)).await
    }
}
