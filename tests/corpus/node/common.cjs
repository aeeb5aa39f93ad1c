//: common module
const { join } = require("path"); exports.x = 1; console.log(join("a", "b"), require.main === module, __filename.endsWith("/script.cjs"));
//: await in a common module
(async () => { await null; console.log("later"); })(); console.log("now");
