// Lists and calls every tool by the official SDK: `stdio PROGRAM ARGS…`, or `http URL TOKEN`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [kind, where, ...rest] = process.argv.slice(2);
const transport = kind === 'stdio'
    ? new StdioClientTransport({ command: where, args: rest, env: process.env })
    : new StreamableHTTPClientTransport(new URL(where), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
    });
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);

const { tools } = await client.listTools();
const untried = new Set(tools.map((tool) => tool.name));

async function call(name, args) {
    untried.delete(name);
    const result = await client.callTool({ name, arguments: args });
    return { ...result, text: result.content[0].text };
}
function expect(what, is) {
    if (!is) {
        throw new Error(`unexpected: ${JSON.stringify(what)}`);
    }
}

const script = { script: 'print("hi"); 40 + 2', script_type: 'osis' };
const done = await call('run_script', script);
expect(done, done.text === '42' && !done.isError);
const failed = await call('run_script', { script: 'throw "no luck"', script_type: 'osis' });
expect(failed, failed.isError && failed.text.includes('no luck'));
const { id } = (await call('submit_job', script)).structuredContent;
expect(id, typeof id === 'string');
const waited = (await call('wait_job', { id })).structuredContent;
expect(waited, waited.status === 'finished' && waited.output === '42');
for (const name of ['get_job', 'list_jobs', 'job_log', 'follow_job', 'stop_job']) {
    const result = await call(name, name === 'list_jobs' ? {} : { id });
    // The job has ended: it cannot be stopped.
    expect(result, result.isError === (name === 'stop_job'));
}
const left = { script: 'seq 3 > "$HERO_OUTPUT_DIR/n.txt"', script_type: 'bash' };
const leaves = (await call('run_script', left)).structuredContent;
const files = (await call('job_files', { id: leaves.id })).structuredContent.files;
expect(files, files.length === 1 && files[0].name === 'n.txt');
const file = await call('get_file', { id: leaves.id, name: 'n.txt' });
expect(file, file.text === '1\n2\n3\n' && file.structuredContent.size === 6);
const ending = await call('job_output', { id, offset: 1 });
expect(ending, ending.text === '2');
const wrong = await call('run_script', { ...script, timeout: 'soon' });
expect(wrong, wrong.isError && wrong.text.includes('timeout') && !wrong.text.includes('job.'));
const types = (await call('script_types', {})).structuredContent;
expect(types, types.types.includes('osis') && !types.types.includes('sal') && types.not_sandboxed.length === 0);
const refused = await call('run_script', { script: '1', script_type: 'sal' });
expect(refused, refused.isError && refused.text.includes('not sandboxed'));
// A variable and a file stay in a session, and another does not see them.
const sessions = [];
for (const value of ['one', 'two']) {
    const started = (await call('start_session', { script_type: 'bash', idle: 60 })).structuredContent;
    expect(started, started.status === 'started');
    sessions.push(started.id);
    const kept = await call('run_in_session', { id: started.id, script: `kept=${value}; echo ${value} >> file; cat file` });
    expect(kept, kept.text === `${value}\n` && !kept.isError);
}
const still = await call('run_in_session', { id: sessions[0], script: 'echo $kept; cat file; false' });
expect(still, still.text === 'one\none\n' && still.isError && still.structuredContent.exit_code === 1);
const listed = (await call('list_sessions', {})).structuredContent.sessions;
expect(listed, listed.length === 2 && listed.some((one) => one.id === sessions[0] && one.calls === 2));
for (const id of sessions) {
    const gone = (await call('end_session', { id })).structuredContent;
    expect(gone, gone.result === 'ended');
}
const over = await call('run_in_session', { id: sessions[0], script: '1' });
expect(over, over.isError && over.text.includes('it is over: ended by'));
const health = (await call('health', {})).structuredContent;
expect(health, Array.isArray(health.problems));
const functions = (await call('script_functions', { name: 'osis_get' })).structuredContent.functions;
expect(functions.length, functions.some((one) => one.name === 'osis_get'));
const checked = (await call('check_script', { script: 'let a = ;', script_type: 'osis' })).structuredContent;
expect(checked, checked.errors.length === 1);
const approval = `[ -n "$HERO_EVENT" ] || { echo '{"wait": {"event": "approved"}}' >&$HERO_FD; exit; }; echo "$HERO_EVENT"`;
const waiting = (await call('submit_job', { script: approval, script_type: 'bash' })).structuredContent.id;
const told = await call('tell_job', { id: waiting, event: 'approved', data: { until: 18 } });
expect(told, !told.isError && ['told', 'kept'].includes(told.structuredContent.result));
const approved = (await call('wait_job', { id: waiting })).structuredContent;
expect(approved, approved.status === 'finished' && JSON.parse(approved.output).data.until === 18);
// A batch, made where the token may reach all machines; else there is none of this id.
let batch = 'none';
if (untried.has('run_on_machines')) {
    const fleet = (await call('run_on_machines', { ...script, at_a_time: 2, stop_after: 1 })).structuredContent;
    expect(fleet, fleet.state === 'finished' && fleet.answers[0].output === '42' && fleet.answers[0].machines.length === 1);
    batch = fleet.id;
}
const awaited = await call('wait_batch', { id: batch, wait: 10 });
expect(awaited, batch === 'none' ? awaited.isError : awaited.structuredContent.answers[0].output === '42');
const halted = await call('stop_batch', { id: batch });
expect(halted, halted.isError === (batch === 'none'));
const late = await call('tell_job', { id: waiting, event: 'approved' });
expect(late, late.isError && late.text.includes('finished'));
const greeted = await call('call_greet', { who: 'ann' });
expect(greeted, greeted.text === 'hello ann 2' && !greeted.isError);
const unknown = await call('call_greet', { who: 'ann', times: 'x' });
expect(unknown, unknown.isError && unknown.text.includes('times: "x" is text: expected integer'));
const greet = tools.find((tool) => tool.name === 'call_greet');
expect(greet, greet.description.startsWith('Greets. ') && greet.inputSchema.required[0] === 'who');
expect([...untried], untried.size === 0);

// Progress comes while the script runs. A cancel stops its job.
const endless = {
    script: `echo '{"progress": 0.5, "text": "half way"}' >&$HERO_FD; exec sleep 600`,
    script_type: 'bash', wait: 600,
};
async function idOfRunning() {
    return (await call('list_jobs', { status: 'started' })).structuredContent.jobs[0]?.id;
}
async function expectStopped(id) {
    const stopped = (await call('wait_job', { id, wait: 60 })).structuredContent;
    expect(stopped, stopped.status === 'error' && stopped.error.startsWith('stopped'));
}
const abort = new AbortController();
let running;
const ended = client.callTool({ name: 'run_script', arguments: endless }, undefined, {
    signal: abort.signal,
    onprogress: async ({ progress, total, message }) => {
        if (progress === 0.5 && total === 1 && message === 'half way') {
            running = await idOfRunning();
            abort.abort();
        }
    },
});
const error = await ended.then(() => null, (error) => error);
expect(String(error), error !== null && running !== undefined);
await expectStopped(running);

// A cancel of the tool for every machine stops its batch.
if (tools.some((tool) => tool.name === 'run_on_machines')) {
    const stop = new AbortController();
    const params = { name: 'run_on_machines', arguments: endless };
    const stopped = client.callTool(params, undefined, { signal: stop.signal }).then(() => null, (error) => error);
    let begun;
    while (begun === undefined) {
        begun = await idOfRunning();
    }
    stop.abort();
    expect('a result', await stopped !== null);
    await expectStopped(begun);
}

// Since the version in which each request stands alone, a client cancels one by closing it: as a stream, and without.
for (const meta of kind === 'http' ? [{ progressToken: 1 }, {}] : []) {
    const closing = new AbortController();
    const version = '2026-07-28';
    const closed = fetch(where, {
        method: 'POST',
        signal: closing.signal,
        headers: {
            'authorization': `Bearer ${rest[0]}`, 'content-type': 'application/json',
            'accept': 'application/json, text/event-stream', 'mcp-protocol-version': version,
            'mcp-method': 'tools/call', 'mcp-name': 'run_script',
        },
        body: JSON.stringify({
            jsonrpc: '2.0', id: 1, method: 'tools/call',
            params: {
                name: 'run_script', arguments: endless,
                _meta: { 'io.modelcontextprotocol/protocolVersion': version, ...meta },
            },
        }),
    }).then((response) => response.text());
    const failed = closed.then((text) => text, (error) => error);
    let begun;
    while (begun === undefined) {
        begun = await idOfRunning();
    }
    closing.abort();
    await failed;
    await expectStopped(begun);
}
console.log('done');
await client.close();
