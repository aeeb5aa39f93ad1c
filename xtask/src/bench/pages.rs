//! The pages of a large namespace: how long a page takes, and what open pages cost the supervisor.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use clap::Args;
use hero::client::JobBuilder;
use hero::proto::job::BootId;
use hero::proto::message::Presence;
use hero::proto::queue::Queue;
use hero::proto::target::ActorId;

use super::{
    BULK, Bench, Done, bare_redis, millis, per_second, print, print_share, print_times, submit,
};
use crate::performer::{LEASE, presence};

/// The groups of a script type, each with a queue.
const GROUPS: usize = 20;
const TIMES: usize = 100;
const SEARCHES: usize = 5;
/// Longer than the task that reads for the pages goes on after the last visitor.
const PAUSE: Duration = Duration::from_secs(6);

/// The size of the namespace.
#[derive(Debug, Args)]
pub(crate) struct PageSizes {
    #[arg(long, default_value_t = 1_000_000)]
    jobs: usize,
    #[arg(long, default_value_t = 500)]
    queues: usize,
    #[arg(long, default_value_t = 200)]
    actors: usize,
    /// The pages that are open at once
    #[arg(long, default_value_t = 200)]
    open: usize,
}

impl Bench {
    pub(super) async fn pages(&self, sizes: &PageSizes) -> Done {
        let visitor = PageVisitor::sign_in()?;
        self.fill(sizes).await?;
        tokio::time::sleep(PAUSE).await;
        let (took, _) = visitor.get("/")?;
        print("/, when nobody has looked before", millis(took), "ms");
        for page in ["/", "/queues", "/machines", "/jobs", "/jobs?state=cancelled", "/limits"] {
            visitor.measure(page, TIMES)?;
        }
        self.open_pages(&visitor, sizes.open).await?;
        // It looks at as many jobs as a search may.
        visitor.measure("/jobs?q=nothing", SEARCHES)
    }

    /// Measures the supervisor while pages are open.
    async fn open_pages(&self, visitor: &PageVisitor, open: usize) -> Done {
        let supervisors = self.client.system().supervisors().await?;
        let pid = supervisors.first().ok_or("no supervisor is live")?.pid;
        tokio::time::sleep(PAUSE).await;
        print_share("supervisor, no page open", pid).await?;
        // Readers of streams end with this process.
        for _ in 0..open {
            let mut stream = visitor.ask("/events?page=/")?;
            std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
        tokio::time::sleep(PAUSE).await;
        print_share(&format!("supervisor, {open} pages open"), pid).await
    }

    async fn fill(&self, sizes: &PageSizes) -> Done {
        let began = Instant::now();
        let target =
            |number: usize| (format!("page{}", number / GROUPS), format!("g{}", number % GROUPS));
        let job = |number: usize| {
            let (script_type, group) = target(number % sizes.queues);
            Ok(JobBuilder::new(&script_type, "1").group(&group).caller_id("bench").build()?)
        };
        submit(&self.client, (BULK, sizes.jobs), job).await?;
        // The jobs of a tenth of the queues end in error.
        for number in 0..sizes.queues / 10 {
            let (script_type, group) = target(number * 10);
            let queue: Queue = format!("type:{script_type}:group:{group}").parse()?;
            self.client.queues().purge(&queue).await?;
        }
        let mut link = bare_redis(&self.config)?.get_connection()?;
        for number in 0..sizes.actors {
            let (script_type, group) = target(number % sizes.queues);
            let actor: ActorId = format!("{script_type}:{group}:{}", number + 1).parse()?;
            self.store.actors().appear(&actor, &presence_of(number)?, LEASE, None).await?;
            // They send no heartbeats.
            redis::cmd("PERSIST").arg(self.store.keys().presence(&actor)).exec(&mut link)?;
        }
        print("filled with", per_second(sizes.jobs, began.elapsed()), "jobs/s");
        Ok(())
    }
}

fn presence_of(number: usize) -> Done<Presence> {
    let machine = format!("machine-{}", number / 8);
    let hostname = machine.clone();
    Ok(Presence { hostname, machine, tasks: 4, ..presence(&BootId::random())? })
}

struct PageVisitor {
    host: String,
    cookie: String,
}

impl PageVisitor {
    fn sign_in() -> Done<Self> {
        let page = std::env::var("HERO_PAGE")
            .map_err(|_| "HERO_PAGE is not set; run this as `hero dev -- xtask bench pages`")?;
        let rest = page.strip_prefix("http://").ok_or("the page is not served over http")?;
        let (host, path) = rest.split_once('/').ok_or("the address of the page has no path")?;
        let mut visitor = Self { host: host.to_owned(), cookie: String::new() };
        let (head, _) = visitor.exchange(&format!("/{path}"))?;
        let cookie = head.lines().find_map(|line| {
            line.to_lowercase().starts_with("set-cookie: ").then(|| line[12..].to_owned())
        });
        let cookie = cookie.ok_or("the page gives no session")?;
        cookie.split(';').next().unwrap_or_default().clone_into(&mut visitor.cookie);
        Ok(visitor)
    }

    fn ask(&self, path: &str) -> Done<TcpStream> {
        let mut stream = TcpStream::connect(&self.host)?;
        let Self { host, cookie } = self;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nCookie: {cookie}\r\n\
             Connection: close\r\n\r\n"
        )?;
        Ok(stream)
    }

    /// Sends a request. Returns the head of the answer, and the length of its body in bytes.
    fn exchange(&self, path: &str) -> Done<(String, usize)> {
        let mut reader = BufReader::new(self.ask(path)?);
        let mut head = String::new();
        while reader.read_line(&mut head)? > 2 {}
        let mut body = Vec::new();
        reader.read_to_end(&mut body)?;
        Ok((head, body.len()))
    }

    fn measure(&self, page: &str, times: usize) -> Done {
        let (mut taken, mut size) = (Vec::new(), 0);
        for _ in 0..times {
            let (took, body) = self.get(page)?;
            taken.push(took);
            size = body;
        }
        print_times(page, &mut taken);
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        print(&format!("{page}, size"), size as f64 / 1024.0, "KiB");
        Ok(())
    }

    /// Loads a page. Returns the time that it took, and its size in bytes.
    fn get(&self, path: &str) -> Done<(Duration, usize)> {
        let began = Instant::now();
        let (head, size) = self.exchange(path)?;
        let took = began.elapsed();
        let is_page = head.starts_with("HTTP/1.1 200");
        if is_page { Ok((took, size)) } else { Err(format!("{path}: {head}").into()) }
    }
}
