// Calls the program by the generated client: URL TOKEN.
import { Client, HTTPTransport, RequestManager } from '@open-rpc/client-js';
import Hero, { Job, JobStatus } from './hero';

const [url, token] = process.argv.slice(2);
const { hostname: host, port, pathname: path } = new URL(url);
const hero = new Hero({ transport: { type: 'http', host, port: Number(port), path } });
// What is generated sends no token.
const headers = { Authorization: `Bearer ${token}` };
hero.rpc = new Client(new RequestManager([new HTTPTransport(url, { headers })]));

function expect(what: unknown, is: boolean): void {
    if (!is) {
        throw new Error(`unexpected: ${JSON.stringify(what)}`);
    }
}

async function main(): Promise<void> {
    const { id } = await hero.job_submit({ script: '40 + 2', script_type: 'osis', tags: ['sum'] });
    expect(id, typeof id === 'string');
    const job: Job = await hero.job_wait(id, 60);
    // An enumeration is one in the client too.
    const finished: JobStatus = 'finished';
    expect(job, job.status === finished && job.output === '42');
    const { jobs } = await hero.job_list('finished', 'osis', 10);
    expect(jobs, jobs.length === 1 && jobs[0].id === id);
    const stats = await hero.stats_get();
    expect(stats, stats.types.some((of) => of.script_type === 'osis' && of.finished === 1));
    const health = await hero.system_health();
    expect(health, Array.isArray(health.problems));
    const error = await hero.job_get('no-such-job').then(() => null, (error) => error);
    expect(error, error?.code === -32002);
    console.log('done');
}

main().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
