//! `hero completions`: prints the completions of a shell; in bash they complete values too, which they ask for here.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};

use super::{Cli, Global, output};
use crate::error::Error;
use crate::proto::named_script::{Parameter, ParameterKind};
use crate::store::ListQuery;

/// The maximum number of values of one kind.
const VALUES_MAX: usize = 200;

/// Completes values with bash, around the function that clap writes.
const BASH_VALUES: &str = r#"
_hero_values() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} kind= of=()
    case "$before" in
        --status) kind=states ;;
        --queue) kind=queues ;;
        -t|--type) kind=types ;;
        --uses) kind=scripts ;;
        --param) [[ ${COMP_WORDS[1]} == run-script ]] && kind=parameters of=(--script "${COMP_WORDS[2]}") ;;
        *) case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
            "job show"|"job wait"|"job output"|"job logs"|"job files"|"job fetch"|"job stop"|"job tell"|"job retry"|"job edit"|"job clone"|"job delete"|"dead show"|"dead retry"|"dead delete") kind=jobs ;;
            "graph show"|"graph wait"|"graph retry"|"graph edit"|"graph tell"|"graph stop"|"graph delete") kind=graphs ;;
            "queue pause"|"queue resume"|"queue drain"|"queue purge") kind=queues ;;
            "script show"|"script history"|"script diff"|"script rollback"|"script delete"|"run-script "*) kind=scripts ;;
            "cron show"|"cron history"|"cron backfill"|"cron edit"|"cron delete"|"cron run"|"cron enable"|"cron disable") kind=cron ;;
        esac ;;
    esac
    if [[ -n $kind && $current != -* ]]; then
        # Names of queues have colons; bash divides words there.
        local line=${COMP_LINE:0:COMP_POINT}
        local word=${line##*[[:space:]]}
        COMPREPLY=($(compgen -W "$(hero completions --values "$kind" "${of[@]}" 2>/dev/null)" -- "$word"))
        [[ $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
        return
    fi
    _hero "$@"
}
complete -F _hero_values -o bashdefault -o default hero
"#;

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  source <(hero completions bash)\n  \
                        hero completions bash > ~/.local/share/bash-completion/completions/hero\n\n\
                        The package installs completions of bash, zsh and fish. In bash they also complete script types, \
                        states, ids, queues, and names of periodic jobs and published scripts.")]
pub(super) struct Completions {
    /// The shell: bash, zsh, fish, elvish or powershell
    #[arg(required_unless_present = "values")]
    shell: Option<Shell>,
    /// Print the values of a kind, one a line
    #[arg(long, hide = true, value_enum)]
    values: Option<ValueKind>,
    /// The published script whose parameters are printed
    #[arg(long, hide = true, requires = "values")]
    script: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ValueKind {
    States,
    Types,
    Jobs,
    Graphs,
    Queues,
    Cron,
    Scripts,
    Parameters,
}

impl Completions {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        if let Some(kind) = self.values {
            let values = values(kind, self.script.as_deref(), global).await?;
            values.iter().try_for_each(|value| output::line(value))?;
        } else if let Some(shell) = self.shell {
            let mut script = Vec::new();
            generate(shell, &mut Cli::command(), "hero", &mut script);
            let mut script = String::from_utf8_lossy(&script).into_owned();
            if shell == Shell::Bash {
                script.push_str(BASH_VALUES);
            }
            output::text(&script)?;
        }
        Ok(())
    }
}

async fn values(
    kind: ValueKind,
    script: Option<&str>,
    global: &Global,
) -> Result<Vec<String>, Error> {
    let config = global.config()?;
    let client = || global.client();
    Ok(match kind {
        ValueKind::States => {
            let words = "waiting queued held running finished failed cancelled replaced expired";
            words.split(' ').map(str::to_owned).collect()
        }
        ValueKind::Types => config.types.keys().map(ToString::to_string).collect(),
        ValueKind::Jobs => {
            let query = ListQuery { limit: VALUES_MAX, ..ListQuery::default() };
            let page = client()?.list_jobs(&query).await?;
            page.items.iter().map(|job| job.id.to_string()).collect()
        }
        ValueKind::Graphs => {
            let page = client()?.graphs().list(VALUES_MAX, None).await?;
            page.items.iter().map(|graph| graph.id.to_string()).collect()
        }
        ValueKind::Queues => {
            let queues = client()?.queues().list().await?;
            queues.iter().take(VALUES_MAX).map(|of| of.queue.to_string()).collect()
        }
        ValueKind::Scripts => {
            let scripts = client()?.scripts().list().await?;
            scripts.iter().map(|(name, _)| name.to_string()).collect()
        }
        ValueKind::Parameters => {
            let used = script.and_then(|script| script.parse().ok());
            let Some(used) = used else { return Ok(Vec::new()) };
            let found = client()?.scripts().get(&used).await?;
            let params = found.of.definition.params.unwrap_or_default();
            // As the option takes it, up to the value.
            let completed = |(name, of): (&String, &Parameter)| match of.kind {
                ParameterKind::String => format!("{name}="),
                _ => format!("{name}:="),
            };
            params.0.iter().map(completed).collect()
        }
        ValueKind::Cron => {
            let crontab = client()?.cron().crontab(&config.crontab()).await?;
            crontab.entries.iter().map(|entry| entry.name.to_string()).collect()
        }
    })
}
