// A deploy that waits for its approval, without a task: hero submit examples/wait/deploy.js; hero job tell ID approved
const fs = require("fs");
const { HERO_EVENT, HERO_FD } = process.env;

function say(message) {
  fs.writeSync(Number(HERO_FD), JSON.stringify(message) + "\n");
  process.exit(0);
}

const came = HERO_EVENT ? JSON.parse(HERO_EVENT) : null;
if (!came) say({ wait: { event: "approved", for: "3d" } });
if (came.timeout) say({ discard: "nobody approved it within 3 days" });
console.log(`deployed, as ${came.who} approved: ${JSON.stringify(came.data)}`);
