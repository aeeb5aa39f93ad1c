// A migration of many steps that goes on where it was, however often its actor dies:
// hero exec --retries 3 examples/state/migration.js
const fs = require("fs");
const { HERO_FD, HERO_FD_IN, HERO_PARAMS, HERO_STATE } = process.env;

// Keeps a state, a value of JSON, for the next attempt. Throws if it is not kept.
function checkpoint(state) {
  fs.writeSync(Number(HERO_FD), JSON.stringify({ state }) + "\n");
  const line = Buffer.alloc(4096);
  const answer = JSON.parse(line.toString("utf8", 0, fs.readSync(Number(HERO_FD_IN), line)));
  if (answer.error) throw new Error(answer.error);
}

const { steps = 1000 } = HERO_PARAMS ? JSON.parse(HERO_PARAMS) : {};
const done = HERO_STATE ? JSON.parse(fs.readFileSync(HERO_STATE, "utf8")) : { step: 0, attempts: 0 };
done.attempts += 1;
console.error(`goes on after step ${done.step}`);
while (done.step < steps) {
  // Here a step does its work. It may run twice: its state is kept only after it.
  done.step += 1;
  checkpoint(done);
}
console.log(JSON.stringify(done));
