import assert from "node:assert/strict";
import fc from "fast-check";
import { Answer, pathOf } from "../../src/http/message/message.ts";
import { readRange } from "../../src/http/routes/nar.ts";
import { Router } from "../../src/http/routes/router.ts";
import { Activity, Connection } from "../../src/http/server/connection.ts";
import { RunningWrites } from "../../src/http/server/answer_writer.ts";
import {
  parseRequestHead,
  Refusal,
  RequestBody,
  RequestReader,
} from "../../src/http/server/request_reader.ts";
import { MemorySocket } from "../support/memory_socket.ts";
import { checkProperty } from "../support/property.ts";
import { assertSameBytes } from "../support/same_bytes.ts";

const TICKS = { count: 0, date: "Thu, 01 Jan 1970 00:00:00 GMT" };
const ENCODER = new TextEncoder();

const token = fc.string({
  unit: fc.constantFrom(..."!#$%&'*+-.^_`|~09AZaz"),
  minLength: 1,
  maxLength: 12,
});
const target = fc.string({ unit: fc.constantFrom(..."/.%2eazAZ09?#[]@:~"), maxLength: 40 })
  .map((rest) => `/${rest}`);
const value = fc.string({ maxLength: 30 }).map((text) => text.replaceAll(/[^!-~]+/g, " ").trim());
const field = fc.tuple(token.map((name) => `x-${name}`), value);

/** Lines of requests, right and wrong ones. */
const line = fc.oneof(
  fc.constantFrom(
    ...["GET /a HTTP/1.1", "POST /a HTTP/1.1", "HEAD / HTTP/1.0", "Host: a", "", "Host : a"],
    ...["Content-Length: 3", "Content-Length: 0", "Transfer-Encoding: chunked", "0", "3", "abc"],
    ...["Connection: close", "Connection: keep-alive", "Expect: 100-continue", " fold", "a: b\rc"],
  ),
  fc.tuple(token, target).map(([method, path]) => `${method} ${path} HTTP/1.1`),
  field.map((pair) => pair.join(": ")),
  fc.string({ unit: "binary", maxLength: 20 }),
);
const conversation = fc.array(fc.tuple(line, fc.constantFrom("\r\n", "\r\n", "\r\n", "\n", "")))
  .map((lines) => ENCODER.encode(lines.flat().join("")));
const cuts = fc.array(fc.nat(200), { maxLength: 10 });

checkProperty(
  "request head: the parsed head is the one that was written",
  fc.property(token, target, fc.array(field, { maxLength: 20 }), (method, path, fields) => {
    const lines = [`${method} ${path} HTTP/1.1`, "Host: x", ...fields.map((one) => one.join(": "))];
    const head = parseRequestHead(`${lines.join("\r\n")}\r\n\r\n`);
    assert.deepEqual([head.method, head.url], [method, path]);
    for (const [name] of fields) {
      const same = fields.filter(([other]) => other.toLowerCase() === name.toLowerCase());
      assert.equal(head.headers.get(name.toLowerCase()), same.map(([, text]) => text).join(", "));
    }
  }),
);

checkProperty(
  "request head: any text is read, or refused with 4xx",
  fc.property(fc.array(line), (lines) => {
    try {
      const { bodyLength } = parseRequestHead(`${lines.join("\r\n")}\r\n\r\n`);
      assert.ok(bodyLength === "chunked" || Number.isSafeInteger(bodyLength));
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      assert.ok(thrown.status >= 400 && thrown.status < 500);
    }
  }),
);

checkProperty(
  "request body: chunks of any size, cut anywhere, are the bytes that were sent",
  fc.asyncProperty(
    fc.array(fc.uint8Array({ minLength: 1, maxLength: 99 })),
    cuts,
    async (parts, at) => {
      const whole = await new Blob(parts.map((part) => new Uint8Array(part))).bytes();
      const chunked = await new Blob([
        ...parts.flatMap((
          part,
        ) => [`${part.length.toString(16)}\r\n`, new Uint8Array(part), "\r\n"]),
        "0\r\n\r\nNEXT",
      ]).bytes();
      const requestReader = new RequestReader(
        new MemorySocket(pieces(chunked, at)),
        new Activity(TICKS),
      );
      const body = new RequestBody(requestReader, "chunked", async () => {});
      assertSameBytes(await new Response(body.stream()).bytes(), whole);
      assert.ok(body.isOver);
      assert.equal(new TextDecoder().decode(await requestReader.some(1)), "N");
    },
  ),
  { runs: 200 },
);

checkProperty(
  "connection: whatever comes, in whatever pieces, gets the same whole answers",
  fc.asyncProperty(conversation, cuts, async (bytes, at) => {
    const inPieces = await answersTo(pieces(bytes, at));
    assert.equal(inPieces, await answersTo([bytes]));
    assert.match(inPieces, ANSWERS_REGEXP);
  }),
);

const HEAD = "(?:200|4\\d\\d) [A-Za-z ]+\r\n(?:[a-z-]+: [ -~]+\r\n)+\r\n";
const ANSWERS_REGEXP = new RegExp(
  `^(?:HTTP/1\\.1 (?:100 Continue\r\n\r\n|${HEAD}(?:answer)?))*$`,
);

checkProperty(
  "router and path: any target is a path or malformed, and finds at most one route",
  fc.property(token, fc.oneof(target, fc.string({ unit: "binary" })), (method, text) => {
    const path = pathOf(`http://localhost${text}`);
    if (path === undefined) return;
    const [nar, narinfo] = [/^\/nar\/([^/]*)$/, /^\/([^/]*)\.narinfo$/];
    const routes = ["/a", { before: "/nar/", behind: "" }, narinfo]
      .map((one, at) => ({ name: String(at), path: one, methods: { GET: answer } }));
    const match = new Router(routes).match(method, path);
    const expected = ["/a" === path, nar.test(path), narinfo.test(path)].indexOf(true);
    assert.equal(match.kind === "none" ? "-1" : match.route.name, String(expected));
    if (match.kind === "method") assert.equal(match.allow, "GET, HEAD");
  }),
);

checkProperty(
  "range: any header is the whole, a part within the file, or beyond it",
  fc.property(
    fc.oneof(
      fc.string(),
      fc.tuple(fc.option(fc.nat(300)), fc.option(fc.nat(300)))
        .map(([first, last]) => `bytes=${first ?? ""}-${last ?? ""}`),
    ),
    fc.nat(200),
    (header, fileSize) => {
      const range = readRange(header, fileSize);
      if (range.kind !== "part") return;
      assert.ok(range.start >= 0 && range.start < range.end && range.end <= fileSize);
    },
  ),
);

function answer(): Answer {
  return new Answer("answer", 200, {});
}

/** The output of a server whose app reads every body. It refuses a head that is never whole. */
async function answersTo(parts: readonly Uint8Array[]): Promise<string> {
  const wire = new MemorySocket(parts);
  await new Connection(wire, {
    async handle(request) {
      if (request.method !== "POST" || request.body === null) return answer();
      const body = await new Response(request.body).text().catch(() => "broken");
      return new Answer("answer", body === "broken" ? 400 : 200, {});
    },
    refuse: ({ status }) => new Answer(null, status, {}),
    refused() {},
    ticks: TICKS,
    running: new RunningWrites(),
    stage: () => "serving",
  }).run();
  assert.ok(wire.isClosed);
  return await wire.said();
}

function pieces(bytes: Uint8Array, at: readonly number[]): readonly Uint8Array[] {
  const ends = [0, ...at.filter((end) => end < bytes.length).sort((a, b) => a - b), bytes.length];
  return ends.slice(1).map((end, index) => bytes.subarray(ends[index], end));
}
