//: output and error
console.log("out"); console.error("err");
//: exit code
process.exitCode = 3; console.log("end");
//: process.exit
console.log("before"); process.exit(4);
//: error
throw new TypeError("bad");
//: rejected promise
Promise.reject(new Error("nobody looks"));
//: timers
setTimeout(() => console.log("late"), 10); console.log("early");
//: promises
Promise.all([1, 2].map(async (n) => n * 2)).then((all) => console.log(all));
//: top-level await is an error in a script
await 1;
//: require
const path = require("path"); console.log(path.join("a", "..", "b"), require.main === module, typeof __filename);
//: missing module
require("no-such-module");
//: own module
const fs = require("fs"); fs.writeFileSync("m.js", "exports.x = 5"); console.log(require(process.cwd() + "/m.js").x);
//: import of a module
import("node:os").then((os) => console.log(typeof os.cpus));
//: files
const fs = require("fs"); fs.writeFileSync("a", "text"); fs.mkdirSync("b/c", { recursive: true }); console.log(fs.readdirSync("."));
//: file of a stream
const out = require("fs").createWriteStream("a"); out.write("one "); out.end("two");
//: missing file
require("fs").readFileSync("no-such-file");
//: standard input is empty
process.stdin.on("data", console.log).on("end", () => console.log("end of input"));
//: arguments
console.log(process.argv.length, process.argv[1] === __filename, process.argv0, process.execArgv);
//: variables
console.log(Object.keys(process.env).filter((n) => !n.startsWith("HERO_")).sort().join());
//: command
console.log(require("child_process").execSync("echo a").toString());
//: command that fails
try { require("child_process").execSync("exit 3"); } catch (e) { console.log(e.status, e.message); }
//: child with its output
require("child_process").spawn("echo", ["inside"], { stdio: "inherit" }).on("exit", (code) => console.log(code));
//: events at exit
process.on("beforeExit", () => console.log("before")).on("exit", (code) => console.log("exit", code));
//: uncaught error is handled
process.on("uncaughtException", (e) => console.log("handled", e.message)); throw new Error("x");
//: signal
process.on("SIGUSR2", () => { console.log("got it"); clearInterval(wait); });
const wait = setInterval(() => {}, 1000); process.kill(process.pid, "SIGUSR2");
//: killed
process.kill(process.pid, "SIGKILL"); setInterval(() => {}, 1000);
//: buffers and text
console.log(Buffer.from("grüße").toString("base64"), "中".length);
//: output that is not text
process.stdout.write(Buffer.from([255, 254, 10]));
//: large output
console.log("x".repeat(200000));
//: syntax error
let x = ;
//: json and dates
console.log(JSON.stringify({ a: [1, null], d: new Date(0) }));
//: fetch of data
fetch("data:text/plain,hello").then((r) => r.text()).then(console.log);
//: memory of WebAssembly
console.log(new WebAssembly.Memory({ initial: 1, maximum: 100 }).buffer.byteLength);
//: instance of WebAssembly
WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => console.log("made"));
//: worker
const { Worker, isMainThread, parentPort } = require("worker_threads");
if (isMainThread) new Worker(__filename).on("message", console.log); else parentPort.postMessage("from a worker");
//: crypto and compression
console.log(require("crypto").createHash("sha256").update("a").digest("hex"), require("zlib").gunzipSync(require("zlib").gzipSync("b")).toString());
//: server on a socket in the folder
const net = require("net"); const s = net.createServer((c) => c.end("hi")); console.log(typeof s.listen);
//: stack overflow
function f() { return f() + 1; } try { f(); } catch (e) { console.log(e.name, e.message); }
//: working directory
console.log(process.cwd() === require("fs").realpathSync("."), process.title, process.exitCode);
//: console of tables
console.table([{ a: 1 }]); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
