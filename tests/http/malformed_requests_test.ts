import assert from "node:assert/strict";
import { BEHIND, BROKEN_BODIES, GET, POST, REFUSED } from "../support/malformed_requests.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";

const NOBODY = { upstreams: [] };
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
    const body = new TextDecoder().decode(await answer.reader.read());
    assert.match(body, /^[A-Z][A-Za-z -]+(?:: [ -~]+)?\n$/);
    const isSaid = status === 414 || status === 431;
    assert.equal(
      /: the [a-z ]+ has over \d+ (bytes|lines); expected at most \d+/.test(body),
      isSaid,
    );
    assert.equal((await connection.answer()).status, 0, "the bytes behind it get no answer");
    assert.ok(cache.log.some(({ msg }) => msg === "connections closed"));
  });
}

/** Requests that are unusual and right. */
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
  "a short unread body": [`${POST}Content-Length: 3\r\n\r\nabc`, 404],
  "unread chunks": [
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

Deno.test("unusual: a response to HTTP/1.0 says whether the connection stays", async () => {
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

Deno.test("unusual: an empty line in pieces is ignored", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  await using other = await RawConnection.open(server.port);
  await other.send("\r");
  await other.send(`\n${BEHIND}`);
  assert.equal((await other.answer()).status, 200);
});

Deno.test("unusual: a large unread body ends its connection", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  const body = "x".repeat(200_000);
  const request = `${POST}Content-Length: ${body.length}\r\n\r\n${body}`;
  const answer = await rawRequest(server.port, request);
  assert.deepEqual([answer.status, answer.headers.get("connection")], [404, "close"]);
});

Deno.test("unusual: Expect: 100-continue for an unread body gets the final response", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen();
  const request = `${POST}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`;
  const answer = await rawRequest(server.port, request);
  assert.deepEqual([answer.status, answer.interim], [404, []]);
  assert.equal(answer.headers.get("connection"), "close");
});
