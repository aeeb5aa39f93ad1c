//! The rotation of passwords by the shipped script, on a machine whose systemctl is a program of the test.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Hero, Redis, needs};

const SCRIPT: &str = include_str!("../../packaging/redis/hero-redis.sh");
/// Has two running units and one that has failed, and notes what is reloaded.
const SYSTEMCTL: &str = "#!/bin/sh\nhere=$(dirname \"$0\")\ncase \"$*\" in\n\
    list-units*--state=active,reloading*) printf '%s loaded active running Hero\\n' hero@supervisor.service hero@osis-default-1.service ;;\n\
    reload*) echo \"$2\" >> \"$here/reloaded\"; test ! -e \"$here/broken\" ;;\n\
    *ActiveState*) echo active ;;\n\
    *StatusText*) echo 'serving' ;;\n\
    *) exit 9 ;;\nesac\n";
const USERS: [&str; 4] = ["actor", "supervisor", "client", "backup"];

/// A machine that the script has set up.
struct Machine {
    redis: Redis,
    hero: Hero,
    etc: PathBuf,
    programs: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let redis = Redis::start();
        let hero = Hero::on(&redis);
        let (etc, programs) = (redis.folder().join("etc"), redis.folder().join("programs"));
        for folder in [&etc.join("hero"), &etc.join("redis"), &programs] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let machine = Self { redis, hero, etc, programs };
        machine.program("systemctl", SYSTEMCTL);
        let hero = env!("CARGO_BIN_EXE_hero");
        machine.program("hero", &format!("#!/bin/sh\nexec {hero} \"$@\"\n"));
        let mut list = String::new();
        for user in USERS {
            machine.write(&format!("hero/{user}.password"), "old\n");
            machine.redis.run(&format!("ACL SETUSER hero-{user} on >old ~* &* +@all"));
            let _ = writeln!(list, "user hero-{user} on #0 ~*");
            let file = if user == "client" { "hero" } else { user };
            let url = machine.redis.url();
            let password = machine.etc.join(format!("hero/{user}.password"));
            let password = password.display().to_string();
            machine.write(
                &format!("hero/{file}.toml"),
                &format!("[redis]\nurl = {url:?}\nusername = \"hero-{user}\"\npassword_file = {password:?}\n"),
            );
        }
        machine.write("redis/hero-acl.conf", &list);
        machine.write("hero/admin.password", "admin\n");
        machine.redis.run("ACL SETUSER admin on >admin ~* &* +@all");
        machine
    }

    fn program(&self, name: &str, text: &str) {
        let file = self.programs.join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.etc.join(file), text).expect("written");
    }

    fn read(file: &Path) -> String {
        fs::read_to_string(file).unwrap_or_default()
    }

    /// Runs the rotation; returns whether it came to its end, and what it printed.
    fn rotate(&self) -> (bool, String) {
        let script = self.redis.folder().join("hero-redis.sh");
        let socket = self.redis.folder().join("redis.sock");
        let text = SCRIPT
            .replace("/etc/", &format!("{}/", self.etc.display()))
            .replace("/run/redis/redis-server.sock", &socket.display().to_string());
        fs::write(&script, text).expect("written");
        let mut command = self.hero.command_of_user("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.programs.display()));
        let done = command.arg(script).arg("rotate").output().expect("sh runs");
        let said = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Returns whether Redis takes a user with a password.
    fn takes(&self, user: &str, password: &str) -> bool {
        let mut link = self.redis.link();
        let user = format!("hero-{user}");
        let is_taken =
            redis::cmd("AUTH").arg(user).arg(password.trim_end()).exec(&mut link).is_ok();
        // A refusal is what the test asks for, and no fault of the access lists.
        self.redis.run("ACL LOG RESET");
        is_taken
    }

    fn password(&self, user: &str) -> String {
        Self::read(&self.etc.join(format!("hero/{user}.password")))
    }
}

#[test]
fn rotation_reloads_the_units_that_run_and_ends_the_old_passwords_of_all_users() {
    if !needs("redis-cli", || which("redis-cli")) {
        return;
    }
    let machine = Machine::new();
    let (is_done, said) = machine.rotate();
    assert!(is_done, "{said}");
    for user in USERS {
        assert!(said.contains(&format!("hero-{user} has a new password")), "{said}");
        assert!(!machine.takes(user, "old"), "{user}");
        assert!(machine.takes(user, &machine.password(user)), "{user}");
    }
    let units = "hero@supervisor.service\nhero@osis-default-1.service\n";
    let reloaded = Machine::read(&machine.programs.join("reloaded"));
    assert_eq!(reloaded, units.repeat(2), "once for actor and supervisor each");
    assert!(!Machine::read(&machine.etc.join("redis/hero-acl.conf")).contains("#0 "));
}

#[test]
fn rotation_that_cannot_end_prints_how_far_it_came_and_the_next_one_ends_it() {
    if !needs("redis-cli", || which("redis-cli")) {
        return;
    }
    let machine = Machine::new();
    let broken = machine.programs.join("broken");
    fs::write(&broken, "").expect("written");
    let (is_done, said) = machine.rotate();
    assert!(!is_done, "{said}");
    let stage = "Redis takes the old and a new password of hero-actor";
    assert!(said.contains(stage) && said.contains("New passwords: none"), "{said}");
    assert!(said.contains("rotate actor supervisor client backup"), "{said}");
    let between = machine.password("actor");
    assert!(machine.takes("actor", "old") && machine.takes("actor", &between));
    assert_eq!(machine.password("supervisor"), "old\n");
    fs::remove_file(broken).expect("removed");
    let (is_done, said) = machine.rotate();
    assert!(is_done, "{said}");
    let is_valid = |password: &str| machine.takes("actor", password);
    assert!(!is_valid("old") && !is_valid(&between) && is_valid(&machine.password("actor")));
}

fn which(program: &str) -> bool {
    std::env::var("PATH")
        .is_ok_and(|path| path.split(':').any(|folder| Path::new(folder).join(program).exists()))
}
