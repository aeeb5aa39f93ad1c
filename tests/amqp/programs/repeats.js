// A client of RabbitMQ with amqplib: it asks, asks again with the same message id after a lost connection, and
// prints a line per answer. Arguments: the folder of amqplib, the url.
'use strict';

const amqp = require(process.argv[2]);

// Publishes a request on a connection of its own, and returns the answer.
async function ask(key, type, messageId, data) {
  const connection = await amqp.connect(process.argv[3]);
  const channel = await connection.createChannel();
  const correlationId = `${messageId}-${Math.random()}`;
  const answered = new Promise((resolve) => {
    channel.consume('amq.rabbitmq.reply-to', (answer) => resolve(answer), { noAck: true });
  });
  const body = Buffer.from(JSON.stringify({ template: 'boat', data }));
  channel.publish('beds.events', key, body, {
    type, messageId, correlationId, replyTo: 'amq.rabbitmq.reply-to', persistent: true,
    timestamp: Math.floor(Date.now() / 1000), headers: { root: 'r1', list: [1, { deep: true }] },
  });
  const answer = await answered;
  await connection.close();
  if (answer.properties.correlationId !== correlationId) throw new Error('the answer of another');
  if (answer.properties.headers.root !== 'r1') throw new Error('no root');
  return answer.content.toString();
}

// Publishes a request, and loses the connection without an answer.
async function lose(key, type, messageId, data) {
  const connection = await amqp.connect(process.argv[3]);
  connection.on('error', () => {});
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => {});
  const body = Buffer.from(JSON.stringify({ template: 'boat', data }));
  channel.publish('beds.events', key, body, { type, messageId, persistent: true });
  await channel.waitForConfirms();
  connection.connection.stream.destroy();
}

async function main() {
  console.log(await ask('rec.read', 'ping', 'p1', null).then((text) => JSON.parse(text).ok));
  await lose('adm', 'count', 'c1', { n: 7 });
  for (let round = 0; round < 2; round += 1) console.log(await ask('adm', 'count', 'c1', { n: 7 }));
  console.log(JSON.parse(await ask('adm', 'count', 'c1', { n: 8 })).error.code);
  await lose('rec.write', 'write', 'w1', { id: 'b', name: 'Bob' });
  console.log(await ask('rec.write', 'write', 'w2', { id: 'b', name: 'Cas' }));
  console.log(await ask('rec.write', 'write', 'w1', { id: 'b', name: 'Bob' }));
  console.log(JSON.parse(await ask('rec.read', 'fetch', 'f1', { id: 'b' })).result.name);
}

// The timers of the connections that were lost would keep the process.
main().then(() => process.exit(0)).catch((error) => {
  console.error(error);
  process.exit(1);
});
