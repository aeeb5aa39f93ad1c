//! A namespace with a bit of everything, as pages show it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Hero, Process, Redis, Served, keys, until_exists, wait_until};

/// The namespace with its daemon and its pages.
pub(crate) struct PageWorld {
    pub(crate) site: Served,
    /// The file that lets the running job end.
    end: PathBuf,
    _actor: Process,
    pub(crate) redis: Redis,
}

const TABLES: &str = "\n[limit.one-python]\ntype = \"python\"\nrunning = 1\n[notify.ops]\njournal = true\nnamed = true\n";
const NIGHTLY: &str =
    "[cron.nightly]\nschedule = \"0 0 3 * * *\"\ntype = \"bash\"\nscript = \"true\"\n";
const GRAPH: &str = "[defaults]\ntype = \"bash\"\n[job.fetch]\nscript = \"echo fetched\"\n\
                     [job.count]\nscript = \"echo 3\"\nafter = [\"fetch\"]\n\
                     [job.check]\nscript = \"exit 4\"\nafter = [\"fetch\"]\n\
                     [job.report]\nscript = \"true\"\nafter = [\"count\", \"check\"]\n\
                     [job.tidy]\nscript = \"true\"\nafter_any = [\"report\"]\n";

impl PageWorld {
    pub(crate) fn start() -> Self {
        let redis = Redis::start();
        let (cron, end) = (redis.folder().join("cron.d"), redis.folder().join("end"));
        fs::create_dir_all(&cron).expect("a folder");
        fs::write(cron.join("nightly.toml"), NIGHTLY).expect("writing a file");
        let cron = format!("\"{}\"", cron.display());
        // Jobs see the file that ends them.
        let folder = format!("[\"{}\"]", redis.folder().display());
        let hero = Hero::on(&redis)
            .set("supervisor.cron_dir", &cron)
            .set("type.bash.sandbox.write", &folder)
            .add(TABLES);
        let site = Served::with(hero, &redis);
        let actor = site.hero.actor("bash-default-1").start();
        let world = Self { site, end, _actor: actor, redis };
        world.fill();
        world
    }

    fn fill(&self) {
        let submit = |args: &[&str]| self.site.hero.run(&[&["submit"], args].concat()).code(0);
        let graph = self.redis.folder().join("graph.toml");
        fs::write(&graph, GRAPH).expect("writing a file");
        submit(&["--graph", &graph.display().to_string(), "--id", "pipeline"]);
        for number in 0..3 {
            let script = format!("echo line {number}; echo oh >&2; exit {number}");
            submit(&["-t", "bash", "--name", "import", "--caller", "nightly", "-e", &script]);
        }
        let retried = ["--retries", "1", "--id", "dead-one", "-e", "echo no such host >&2; exit 7"];
        submit(&[&["-t", "bash"], &retried[..]].concat());
        let later = ["--id", "later", "--at", "2100-01-01T00:00:00Z", "-e", "true"];
        submit(&[&["-t", "bash"], &later[..]].concat());
        submit(&["-t", "python", "--id", "unserved", "-e", "print(1)"]);
        let script = format!(
            "echo begun; echo '{{\"progress\": 0.4, \"text\": \"page 4 of 10\"}}' >&$HERO_FD; {}",
            until_exists(&self.end)
        );
        submit(&["-t", "bash", "--id", "running", "--name", "long import", "-e", &script]);
        let object = |id: &str| {
            format!(
                "{{\"context\":\"work\",\"type\":\"person\",\"object\":{{\"id\":\"{id}\",\"age\":30}}}}\n"
            )
        };
        self.site
            .hero
            .run_with_input(&["osis", "import"], &["ann", "bob"].map(object).concat())
            .code(0);
        let status = |id: &str| self.redis.field(&keys::job(id), "status").unwrap_or_default();
        wait_until("the dead letter is there and the long job runs", || {
            status("dead-one") == "error" && status("running") == "started"
        });
    }

    /// Returns the id of a job of the graph.
    pub(crate) fn id_of(&self, name: &str) -> String {
        let listed = self.site.hero.run(&["job", "list", "--name", name, "--json"]).code(0).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        listed["jobs"][0]["id"].as_str().expect("a job of this name").to_owned()
    }
}

impl Drop for PageWorld {
    fn drop(&mut self) {
        let _ = fs::write(&self.end, "");
    }
}
