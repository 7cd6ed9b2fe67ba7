import assert from "node:assert/strict";
import fc from "fast-check";
import { eventually } from "../support/eventually.ts";
import { EVIL, wellFormed } from "../support/http_grammar.ts";
import { smuggling } from "../support/http_smuggling.ts";
import { BEHIND, BROKEN_BODIES, POST, REFUSED } from "../support/malformed_requests.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { tryForTime } from "../support/property.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";

const excuse = programsMissing("nginx");

testUnless(excuse, "nginx in front: no malformed request is read in two ways", async () => {
  await using scene = await Scene.open();
  const chunk = `${EVIL.length.toString(16)}\r\n${EVIL}\r\n`;
  const hidden = [
    `${POST}Content-Length: ${EVIL.length}\r\n\r\n${EVIL}`,
    `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`,
    `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}0\r\nA: b\r\n\r\n`,
  ];
  const corpus = [
    ...hidden,
    ...Object.values(REFUSED).map(([text]) => text),
    ...Object.values(BROKEN_BODIES),
  ];
  for (const text of corpus) await scene.send(text + BEHIND);
  await scene.check();
});

testUnless(excuse, "nginx in front: whatever comes, both read the same requests", async () => {
  await using scene = await Scene.open();
  const conversations = fc.array(fc.oneof(smuggling, wellFormed), { minLength: 1, maxLength: 6 });
  await tryForTime(conversations, async (all) => {
    for (const { text } of all) await scene.send(text);
    await scene.check();
  });
});

/** A cache behind nginx, and the requests that each of them logs. */
class Scene implements AsyncDisposable {
  readonly #cache: TestCache;
  readonly #front: NginxFront;
  readonly #closing: AsyncDisposableStack;

  private constructor(cache: TestCache, front: NginxFront, closing: AsyncDisposableStack) {
    this.#cache = cache;
    this.#front = front;
    this.#closing = closing;
  }

  static async open(): Promise<Scene> {
    const closing = new AsyncDisposableStack();
    const cache = closing.use(await TestCache.open({ upstreams: [] }));
    const server = closing.use(cache.listen());
    const front = closing.use(await NginxFront.open(server.port));
    return new Scene(cache, front, closing);
  }

  /** Sends bytes as they stand, and reads until nginx closes the connection. */
  async send(text: string): Promise<void> {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.#front.port });
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const piece = new Uint8Array(64 * 1024);
    try {
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
      await connection.closeWrite();
      while (await connection.read(piece) !== null);
    } catch (error) {
      // nginx resets a connection that it does not want to read.
      const isReset = error instanceof Deno.errors.ConnectionReset ||
        error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.NotConnected;
      if (!isReset) throw error;
    }
  }

  /** Each request that larder read is one that nginx read, with its method and target. */
  async check(): Promise<void> {
    const last = await rawRequest(this.#front.port, requestText("GET", "/healthz"));
    assert.equal(last.status, 200);
    // A message that larder refuses to read has no answer of the app, and no request behind it.
    const read = this.#cache.log.splice(0)
      .filter(({ msg, reason }) => msg === "request" && reason === undefined);
    // nginx logs a request once it is over for it, which may be after larder.
    await eventually(`nginx has read ${JSON.stringify(read)}`, () => {
      const asked = this.#front.requests();
      return Promise.resolve(read.every(({ request_id: id }) => asked.has(String(id))));
    });
    const asked = this.#front.requests();
    for (const { request_id: id, method } of read) {
      assert.equal(method, asked.get(String(id))?.method);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}
