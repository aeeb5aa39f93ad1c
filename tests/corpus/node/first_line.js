//: option in the first line
#!/usr/bin/node --stack-trace-limit=0
console.log(process.execArgv, Error.stackTraceLimit)
//: option in the first line by env
#!/usr/bin/env -S node --no-warnings
process.emitWarning("careful"); console.log("said")
//: first line without options
#!/usr/bin/env node
console.log(process.execArgv.length)
