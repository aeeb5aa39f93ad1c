// A script in node that goes on where it was: hero exec --retries 3 examples/state/resume.js
const fs = require("fs");
const { HERO_ATTEMPT, HERO_FD, HERO_FD_IN, HERO_STATE } = process.env;

// Keeps a state, a value of JSON, for the next attempt. Throws if it is not kept.
function checkpoint(state) {
  fs.writeSync(Number(HERO_FD), JSON.stringify({ state }) + "\n");
  const line = Buffer.alloc(4096);
  const answer = JSON.parse(line.toString("utf8", 0, fs.readSync(Number(HERO_FD_IN), line)));
  if (answer.error) throw new Error(answer.error);
}

let done = HERO_STATE ? JSON.parse(fs.readFileSync(HERO_STATE, "utf8")) : 0;
while (done < 5) {
  done += 1;
  checkpoint(done);
  if (done === 3 && HERO_ATTEMPT === "1") throw new Error("lost the connection");
}
console.log(`${done} steps in ${HERO_ATTEMPT} attempts`);
