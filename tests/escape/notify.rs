//! Messages of a script to systemd in the name of the daemon.

use std::os::unix::net::UnixDatagram;

use crate::support::{Hero, Redis};

#[test]
fn script_cannot_speak_to_systemd_for_the_daemon() {
    let redis = Redis::start();
    let path = redis.folder().join("notify");
    let systemd = UnixDatagram::bind(&path).expect("a socket");
    systemd.set_nonblocking(true).expect("set");
    let hero = Hero::on(&redis)
        .set("type.open.engine", "\"command\"")
        .set("type.open.command", "[\"/usr/bin/python3\", \"{script}\"]")
        .set("type.open.sandbox.enabled", "false");
    let script = format!(
        "import os, socket\nprint('NOTIFY_SOCKET' in os.environ)\ntry:\n    \
         socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'STOPPING=forged', {path:?})\n\
         except OSError as error: print(error.errno)\n"
    );
    let messages = || {
        let mut all = String::new();
        let mut buffer = [0; 4096];
        while let Ok(length) = systemd.recv(&mut buffer) {
            all.push_str(&String::from_utf8_lossy(&buffer[..length]));
            all.push('\n');
        }
        all
    };
    for (script_type, printed, is_forged) in
        [("python", "False\n1\n", false), ("open", "False\n", true)]
    {
        let unit = format!("{script_type}-default-1");
        let _actor = hero.actor(&unit).env("NOTIFY_SOCKET", &path).start();
        hero.run(&["exec", "-t", script_type, "-e", &script]).code(0).stdout(printed);
        let told = messages();
        assert!(told.contains("READY=1"), "{told}");
        assert_eq!(told.contains("forged"), is_forged, "{told}");
    }
}
