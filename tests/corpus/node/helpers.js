//: child writes after the end
const { spawn } = require('child_process');
spawn('/bin/sh', ['-c', 'sleep 0.3; echo later'], { stdio: ['ignore', 1, 2] }).unref();
console.log('now');
//: child of a failed script writes after the end
const { spawn } = require('child_process');
spawn('/bin/sh', ['-c', 'sleep 0.3; echo later >&2'], { stdio: ['ignore', 1, 2] }).unref();
process.exitCode = 3;
