import assert from "node:assert/strict";
import { PHASE_LIMITS_MS } from "../../src/http/server/overdue.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";

const NOBODY = { upstreams: [] };
const GET = "GET /healthz HTTP/1.1\r\n";
const POST = "POST /pin/x.narinfo HTTP/1.1\r\nHost: x\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";
const BEHIND = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

/** What two servers could read differently, and what is no HTTP at all. */
const REFUSED: Readonly<Record<string, readonly [request: string, status: number]>> = {
  "garbage": ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400],
  "garbage with lines": ["hello\r\nthere\r\n\r\n", 400],
  "another protocol": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  "HTTP/0.9": ["GET /healthz\r\n\r\n", 400],
  "a bare line feed in front": [`\n${GET}Host: x\r\n\r\n`, 400],
  "a bare carriage return in front": [`\r${GET}Host: x\r\n\r\n`, 400],
  "many empty lines in front": [`${"\r\n".repeat(20)}${GET}Host: x\r\n\r\n`, 400],
  "a blank in front": [` ${GET}Host: x\r\n\r\n`, 400],
  "two blanks in the request line": ["GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "no path": ["GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "an authority": ["CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "NUL in the path": ["GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "no host": [`${GET}\r\n`, 400],
  "two hosts": [`${GET}Host: x\r\nHost: y\r\n\r\n`, 400],
  "a host with a path": [`${GET}Host: x/y\r\n\r\n`, 400],
  "a blank before the colon": [`${GET}Host : x\r\n\r\n`, 400],
  "a fold": [`${GET}Host: x\r\nA: b\r\n c\r\n\r\n`, 400],
  "a fold in front": [`${GET} Host: x\r\n\r\n`, 400],
  "a header without a colon": [`${GET}Host: x\r\nA\r\n\r\n`, 400],
  "a header without a name": [`${GET}Host: x\r\n: a\r\n\r\n`, 400],
  "a bare line feed": ["GET /healthz HTTP/1.1\nHost: x\n\n", 400],
  "a bare line feed between headers": [`${GET}Host: x\nA: b\r\n\r\n`, 400],
  "a bare carriage return": [`${GET}Host: x\rA: b\r\n\r\n`, 400],
  "NUL in a value": [`${GET}Host: x\r\nA: b\0c\r\n\r\n`, 400],
  "two lengths": [`${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400],
  "the same length twice": [`${POST}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`, 400],
  "a list of lengths": [`${POST}Content-Length: 1, 1\r\n\r\na`, 400],
  "a length with a sign": [`${POST}Content-Length: +1\r\n\r\na`, 400],
  "a negative length": [`${POST}Content-Length: -1\r\n\r\na`, 400],
  "a length in hexadecimal": [`${POST}Content-Length: 0x1\r\n\r\na`, 400],
  "a length beyond numbers": [`${POST}Content-Length: 99999999999999999999\r\n\r\na`, 400],
  "a length behind an odd blank": [`${POST}Content-Length: \xa01\r\n\r\na`, 400],
  "length and chunks": [
    `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "an unknown coding": [`${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
  "chunks twice": [
    `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "an almost known coding": [`${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  "a coding with a letter that folds to ASCII": [
    `${POST}Transfer-Encoding: chun\xe2\x84\xaaed\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "chunks of an old client": [
    "POST /pins HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  "a body for GET": [`${GET}Host: x\r\nContent-Length: 5\r\n\r\nhello`, 400],
  "chunks for GET": [`${GET}Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  "an unknown expectation": [`${POST}Expect: 200-ok\r\nContent-Length: 1\r\n\r\na`, 417],
  "a huge path": [`GET /${"x".repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
  "a huge header": [`${GET}Host: x\r\nA: ${"x".repeat(40_000)}\r\n\r\n`, 431],
  "many headers": [`${GET}Host: x\r\n${"A: b\r\n".repeat(200)}\r\n`, 431],
};

/** Bodies that nobody reads, and that are none. */
const BROKEN_BODIES: Readonly<Record<string, string>> = {
  "a chunk without a size": `${POST}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
  "a chunk of a negative size": `${POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n`,
  "a chunk longer than it says": `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n`,
  "chunks with bare line feeds": `${POST}Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n`,
  "a chunk with a blank behind its size": `${POST}${CHUNKED}1 \r\na\r\n0\r\n\r\n`,
  "a request line for a trailer": `${POST}${CHUNKED}0\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n`,
  "a trailer with a bare carriage return": `${POST}${CHUNKED}0\r\nA: b\rC: d\r\n\r\n`,
  "a trailer with NUL": `${POST}${CHUNKED}0\r\nA: b\0c\r\n\r\n`,
  "a trailer with a fold": `${POST}${CHUNKED}0\r\nA: b\r\n c\r\n\r\n`,
  "a trailer with a blank before the colon": `${POST}${CHUNKED}0\r\nA : b\r\n\r\n`,
  "a trailer behind a bare line feed": `${POST}${CHUNKED}0\nA: b\r\n\r\n`,
  "a long line of a chunk": `${POST}Transfer-Encoding: chunked\r\n\r\n1;${
    "x".repeat(2_000)
  }\r\na\r\n`,
};

for (const [name, request] of Object.entries(BROKEN_BODIES)) {
  Deno.test(`malformed: ${name} ends the connection behind the answer that is logged`, async () => {
    await using cache = await TestCache.open(NOBODY);
    await using server = cache.listen();
    await using connection = await RawConnection.open(server.port);
    await connection.send(request + BEHIND);
    const { status, headers, reader } = await connection.answer();
    await reader.read();
    assert.deepEqual([status, headers.get("connection")], [404, "close"]);
    assert.equal((await connection.answer()).status, 0);
    const lines = cache.logged("info").filter(({ msg }) => msg === "request");
    const told = lines.map((line) => [line["status"], line["request_id"]]);
    assert.deepEqual(told, [[404, headers.get("x-request-id")]]);
  });
}

for (const [name, [request, status]] of Object.entries(REFUSED)) {
  Deno.test(`malformed: ${name} is ${status}, and the connection ends`, async () => {
    await using cache = await TestCache.open(NOBODY);
    await using server = cache.listen();
    await using connection = await RawConnection.open(server.port);
    await connection.send(request + BEHIND);

    const answer = await connection.answer();
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("connection"), "close");
    assert.match(answer.headers.get("x-request-id") ?? "", /^[0-9a-z-]+$/);
    assert.match(new TextDecoder().decode(await answer.reader.read()), /^[A-Z][A-Za-z -]+\n$/);
    assert.equal((await connection.answer()).status, 0, "what is behind it is not answered");
    assert.ok(cache.log.some(({ msg }) => msg === "connections closed"));
  });
}

/** What is unusual and right. */
const TAKEN: Readonly<Record<string, readonly [request: string, status: number]>> = {
  "a target with scheme and host": [
    "GET http://other.example/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    200,
  ],
  "an empty host": [`${GET}Host:\r\n\r\n`, 200],
  "blanks around a value": [`${GET}Host: \t x \t\r\n\r\n`, 200],
  "an empty value": [`${GET}Host: x\r\nA:\r\n\r\n`, 200],
  "text beyond ASCII in a value": [`${GET}Host: x\r\nUser-Agent: caf\xc3\xa9 \xff\r\n\r\n`, 200],
  "no bytes announced for GET": [`${GET}Host: x\r\nContent-Length: 0\r\n\r\n`, 200],
  "an unknown method": ["BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 405],
  "an empty line in front": [`\r\n${GET}Host: x\r\n\r\n`, 200],
  "two empty lines in front": [`\r\n\r\n${GET}Host: x\r\n\r\n`, 200],
  "an empty line behind a body": [`${POST}Content-Length: 3\r\n\r\nabc\r\n`, 404],
  "a long s for an s": [`${GET}Host: x\r\nConnection: clo\xc5\xbfe\r\n\r\n`, 200],
  "a short body that nobody reads": [`${POST}Content-Length: 3\r\n\r\nabc`, 404],
  "chunks that nobody reads": [
    `${POST}Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: u\r\n\r\n`,
    404,
  ],
};

for (const [name, [request, status]] of Object.entries(TAKEN)) {
  Deno.test(`unusual: ${name} is ${status}, and the connection goes on`, async () => {
    await using cache = await TestCache.open(NOBODY);
    await using server = cache.listen();
    await using connection = await RawConnection.open(server.port);
    await connection.send(request + BEHIND + requestText("GET", "/nowhere"));
    for (const expected of [status, 200, 404]) {
      const answer = await connection.answer();
      assert.equal(answer.status, expected);
      await answer.reader.read();
      assert.ok(answer.reader.isComplete);
    }
  });
}

Deno.test("unusual: a client of HTTP/1.0 is told when its connection stays", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  await using connection = await RawConnection.open(server.port);
  await connection.send("GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  const first = await connection.answer();
  assert.deepEqual([first.status, first.headers.get("connection")], [200, "keep-alive"]);
  await first.reader.read();
  await connection.send("GET /healthz HTTP/1.0\r\n\r\n");
  const second = await connection.answer();
  assert.deepEqual([second.status, second.headers.get("connection")], [200, "close"]);
  await second.reader.read();
  assert.equal((await connection.answer()).status, 0);
});

Deno.test("unusual: a word with a letter that folds to ASCII keeps no old connection", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  await using connection = await RawConnection.open(server.port);
  await connection.send("GET /healthz HTTP/1.0\r\nConnection: \xe2\x84\xaaeep-alive\r\n\r\n");
  const { status, headers } = await connection.answer();
  assert.deepEqual([status, headers.get("connection")], [200, "close"]);
});

Deno.test("unusual: an empty line in pieces is ignored, and no request is waited for", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen({
    sweepEveryMs: 10,
    limitsMs: { ...PHASE_LIMITS_MS, head: 50, idle: 300 },
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send("\r");
  await connection.send("\n");
  assert.equal((await connection.answer()).status, 0, "closed as idle, without a 408");
  await using other = await RawConnection.open(server.port);
  await other.send("\r");
  await other.send(`\n${BEHIND}`);
  assert.equal((await other.answer()).status, 200);
});

Deno.test("unusual: a body larger than anybody wants ends its connection", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  const body = "x".repeat(200_000);
  const request = `${POST}Content-Length: ${body.length}\r\n\r\n${body}`;
  const answer = await rawRequest(server.port, request);
  assert.deepEqual([answer.status, answer.headers.get("connection")], [404, "close"]);
});

Deno.test("unusual: who waits for our word before a body gets the answer instead", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  const request = `${POST}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`;
  const answer = await rawRequest(server.port, request);
  assert.deepEqual([answer.status, answer.interim], [404, []]);
  assert.equal(answer.headers.get("connection"), "close");
});
