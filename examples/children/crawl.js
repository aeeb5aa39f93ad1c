// A script in node that submits jobs: hero exec examples/children/crawl.js
// Needs may_submit = ["node"] in [type.node].
const fs = require("fs");
const { HERO_FD, HERO_FD_IN } = process.env;

// Submits a job, or a list of jobs, and returns what Hero answers. Throws if it is refused.
function submit(job) {
  fs.writeSync(Number(HERO_FD), JSON.stringify({ submit: job }) + "\n");
  const line = Buffer.alloc(4096);
  const answer = JSON.parse(line.toString("utf8", 0, fs.readSync(Number(HERO_FD_IN), line)));
  if (answer.error) throw new Error(answer.error);
  return answer.ok;
}

const pages = [1, 2, 3].map((page) => ({ type: "node", name: `page-${page}`, script: `console.log(${page})` }));
for (const { id } of submit(pages)) console.log(JSON.stringify({ ok: { id } }));
