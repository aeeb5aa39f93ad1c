//: module with top-level await
const { setTimeout: wait } = await import("node:timers/promises"); console.log(await wait(5, "late"));
//: imports of a module
import { join } from "node:path"; import * as os from "node:os"; console.log(join("a", "b"), typeof os.cpus);
//: no require in a module
require("fs");
//: place of a module
console.log(import.meta.url.endsWith("/script.mjs"), typeof __filename, this === undefined);
//: own modules
import { writeFileSync } from "node:fs"; writeFileSync("m.mjs", "export default 5;");
console.log((await import(process.cwd() + "/m.mjs")).default);
//: missing module of a module
import "no-such-module";
//: error of a module
export const x = 1; throw new RangeError("bad");
//: exit code of a module
process.exitCode = 5; console.log("end");
//: await that never ends
await new Promise(() => {});
