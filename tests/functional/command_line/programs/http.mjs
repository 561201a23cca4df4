// A server and twenty requests to it in one process, then a long wait.
import http from 'node:http';

const server = http.createServer((request, response) => response.end(request.url.slice(1)));
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));

const get = path => new Promise(resolve =>
  http.get({port: server.address().port, path, agent: false}, response => {
    let body = '';
    response.on('data', chunk => { body += chunk; });
    response.on('end', () => resolve(Number(body)));
  }));

const answers = await Promise.all(Array.from({length: 20}, (_, number) => get(`/${number}`)));
const begin = performance.now();
await new Promise(resolve => setTimeout(resolve, 100_000));
console.log(answers.reduce((a, b) => a + b), Math.round((performance.now() - begin) / 1000));
server.close();
