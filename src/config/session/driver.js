// Serves the calls of a session in this process: what a call defines at the top stays for the next. The argument is the
// number of seconds without a call after which it ends.
(async () => {
    const fs = require('fs');
    const util = require('util');
    const vm = require('vm');
    const idle = Number(process.argv[2]);
    const [toHero, fromHero] = [Number(process.env.HERO_FD), Number(process.env.HERO_FD_IN)];
    const most = 131072;
    const exit = process.exit.bind(process);
    const [startTimer, stopTimer] = [setTimeout, clearTimeout];

    // What the call writes, while one is served.
    let output = null;
    let cut = 0;
    const logs = fs.writeSync.bind(fs, 2);
    for (const stream of [process.stdout, process.stderr]) {
        const write = stream.write.bind(stream);
        stream.write = (chunk, encoding, done) => {
            if (output === null) return write(chunk, encoding, done);
            const bytes = typeof chunk === 'string' && typeof encoding === 'string'
                ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
            output = Buffer.concat([output, bytes]);
            if (output.length > most) {
                cut += output.length - most;
                output = output.subarray(output.length - most);
            }
            const then = typeof encoding === 'function' ? encoding : done;
            if (then) process.nextTick(then);
            return true;
        };
    }

    function say(message) {
        let rest = Buffer.from(`${JSON.stringify(message)}\n`);
        while (rest.length > 0) rest = rest.subarray(fs.writeSync(toHero, rest));
    }
    function answer(code) {
        const said = { exit: code, output: output.toString('base64'), truncated: cut };
        const shown = output;
        output = null;
        try { logs(shown); } catch {}
        return said;
    }
    // A call that ends the process ends the session; its caller gets its answer.
    process.on('exit', (code) => {
        if (output !== null) say({ next: answer(code & 255) });
    });
    for (const of of ['uncaughtException', 'unhandledRejection']) process.on(of, (error) => console.error(error));

    async function nextLine() {
        const parts = [];
        const part = Buffer.alloc(1 << 16);
        const timer = startTimer(() => { console.log(`idle for ${idle} s`); exit(0); }, idle * 1000);
        for (;;) {
            const { bytesRead } = await util.promisify((done) => fs.read(fromHero, part, 0, part.length, null,
                (error, bytesRead) => done(error, { bytesRead })))();
            if (bytesRead === 0) throw new Error('hero gives no further call');
            parts.push(Buffer.from(part.subarray(0, bytesRead)));
            if (part[bytesRead - 1] === 10) break;
        }
        stopTimer(timer);
        return Buffer.concat(parts).toString();
    }

    async function run({ script, timeout }, number) {
        const text = Buffer.from(script, 'base64').toString();
        const options = { filename: `<call ${number}>`, timeout: timeout * 1000 };
        [output, cut] = [Buffer.alloc(0), 0];
        let timer;
        const overdue = new Promise((_, fail) => {
            const why = Object.assign(new Error(`the call took longer than ${timeout} s`), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
            timer = startTimer(() => fail(why), timeout * 1000);
        });
        try {
            let value;
            try {
                value = vm.runInThisContext(text, options);
            } catch (error) {
                if (!(error instanceof SyntaxError) || !/\bawait\b/.test(text)) throw error;
                value = vm.runInThisContext(`(async () => {${text}\n})()`, options);
            }
            value = await Promise.race([value, overdue]);
            if (value !== undefined) console.log(typeof value === 'string' ? value : util.inspect(value));
            return answer(0);
        } catch (error) {
            const isOverdue = error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
            console.error(isOverdue ? `the call took longer than ${timeout} s` : error);
            return answer(isOverdue ? 124 : 1);
        } finally {
            stopTimer(timer);
        }
    }

    globalThis.require = require('module').createRequire(`${process.cwd()}/`);
    let said = null;
    for (let number = 1; ; number += 1) {
        say({ next: said });
        const { ok, error } = JSON.parse(await nextLine());
        if (error !== undefined) throw new Error(error);
        if (ok.end !== undefined) {
            console.log(ok.end);
            exit(0);
        }
        said = await run(ok, number);
    }
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
