// JavaScript: the interpreter brings its own ways to files, programs, the network and threads.

//: read a secret
return fs.readFileSync(SECRET, "utf8") === TOKEN;

//: read a secret by a promise
return (await fs.promises.readFile(SECRET, "utf8")) === TOKEN;

//: read a secret by a stream
let text = "";
for await (const piece of fs.createReadStream(SECRET)) text += piece;
return text === TOKEN;

//: read a secret by a link
fs.symlinkSync(SECRET, "x");
return fs.readFileSync("x", "utf8") === TOKEN;

//: read a secret from inside its folder
process.chdir(FOLDER);
return fs.readFileSync("secret", "utf8") === TOKEN;

//: read a secret as a module
try {
  require(SECRET);
} catch (error) {
  return error instanceof SyntaxError || error instanceof ReferenceError;
}

//: read a secret by import
await import("data:text/javascript,import fs from 'fs';globalThis.text=fs.readFileSync('" + SECRET + "','utf8')");
return globalThis.text === TOKEN;

//: read a secret from a context of its own
const outer = require("vm").runInNewContext("this.constructor.constructor('return process')()");
return outer.mainModule.require("fs").readFileSync(SECRET, "utf8") === TOKEN;

//: read a secret by the inner functions of the interpreter
const pipe = { type: "pipe", readable: true, writable: true };
const program = { file: "/bin/cat", args: ["cat", SECRET], envPairs: [], stdio: [pipe, pipe, pipe] };
return process.binding("spawn_sync").spawn(program).output[1].toString() === TOKEN;

//: read a secret in a worker
const { Worker } = require("worker_threads");
const code = "require('worker_threads').parentPort.postMessage(require('fs').readFileSync(process.env.SECRET, 'utf8'))";
return (await once(new Worker(code, { eval: true }), "message")) === TOKEN;

//: read a secret through a program
return require("child_process").execFileSync("/bin/cat", [SECRET], { encoding: "utf8" }) === TOKEN;

//: read a secret through a shell
return require("child_process").execSync('cat "$SECRET" 2> /dev/null', { encoding: "utf8" }) === TOKEN;

//: read a secret through another interpreter
const child = require("child_process").fork("/dev/stdin", { execArgv: ["-e", "process.send(require('fs').readFileSync(process.env.SECRET, 'utf8'))"], silent: true });
return (await once(child, "message", "exit")) === TOKEN;

//: copy a secret
fs.cpSync(SECRET, "x");
return fs.readFileSync("x", "utf8") === TOKEN;

//: list a private folder
return fs.readdirSync(FOLDER).includes("secret");

//: watch a private folder
const watcher = fs.watch(FOLDER);
setTimeout(() => watcher.close(), 50);
await once(watcher, "close");
return true;

//: read the daemon's environment
return fs.readFileSync(`/proc/${DAEMON}/environ`).length > 0;

//: read the daemon's configuration
return fs.readFileSync(CONFIG).length > 0;

//: write a file outside
fs.writeFileSync(FILE, "x");
return true;

//: delete a folder outside
fs.rmSync(OUTSIDE, { recursive: true });
return true;

//: write a report outside
process.report.writeReport(OUTSIDE + "/report");
return fs.existsSync(OUTSIDE + "/report");

//: write its memory outside
require("v8").writeHeapSnapshot(OUTSIDE + "/memory");
return true;

//: move a file outside under another name
fs.renameSync(FILE, OUTSIDE + "/x");
return true;

//: load a library from outside
try {
  process.dlopen({ exports: {} }, process.env.PROGRAM);
} catch (error) {
  return !/Permission denied/.test(error);
}

//: connect to a port
await once(require("net").connect(TCP, "127.0.0.1"), "connect");
return true;

//: ask a server by HTTP
const request = require("http").get({ port: TCP, host: "127.0.0.1" });
await new Promise((resolve, reject) => request.on("error", reject).on("socket", (used) => used.on("connect", resolve)));
return true;

//: ask a server by fetch
return fetch(`http://127.0.0.1:${TCP}/`, { signal: AbortSignal.timeout(1000) }).then(() => true, (error) => error.name === "TimeoutError");

//: send a datagram
const datagram = require("dgram").createSocket("udp4");
await new Promise((resolve, reject) => datagram.on("error", reject).send("x", UDP, "127.0.0.1", (error) => (error ? reject(error) : resolve())));
return true;

//: reach Redis by its socket
await once(require("net").connect(REDIS), "connect");
return true;

//: listen on a port
await once(require("net").createServer().listen(0), "listening");
return true;

//: listen on a socket in its folder
await once(require("net").createServer().listen("socket"), "listening");
return true;

//: open a port to a debugger
require("inspector").open(0, "127.0.0.1");
return require("inspector").url() !== undefined;

//: signal a process
//: landlock: 6
process.kill(VICTIM, "SIGCONT");
return true;

//: open a debugger in the daemon
//: without: not tried
process._debugProcess(DAEMON);
return true;

//: slow a process down
os.setPriority(VICTIM, 1);
return true;

//: become another user
//: without: escapes as root
process.setuid(process.getuid() + 12345);
return true;

//: list the networks of the machine
return Object.keys(os.networkInterfaces()).length > 0;

//: outlive its job
//: without: may be held
const left = require("child_process").spawn("/bin/sh", ["-c", 'sleep 1; echo x > "$OUTSIDE/alive"'], { detached: true, stdio: "ignore" });
left.unref();
return false;

//: call itself without end
//: without: may be held
function f() { return f(); }
f();
return true;

//: compute without end
//: ends: SIGXCPU
//: without: not tried
for (;;);
