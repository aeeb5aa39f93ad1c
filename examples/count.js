// Runs as type node: standard output is the job's output, standard error its log.
const text = process.env.TEXT ?? "the quick brown fox jumps over the lazy dog the end";
console.error(`counting for job ${process.env.HERO_JOB_ID}`);
console.log(JSON.stringify({ words: text.split(" ").length }));
