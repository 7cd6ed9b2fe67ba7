import assert from "node:assert/strict";
import type { Bytes } from "../../../src/base/bytes.ts";
import { sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import { Download } from "../../../src/cache/download/run_download.ts";
import { GrowingFile } from "../../../src/cache/download/growing_file.ts";
import { BodyReader } from "../../../src/http/server/answer_writer.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const NAME = narName(sha256FromDigest(new Uint8Array(32)), "none");
const TEXT = "the bytes of a NAR file";
const CLIENT = { passThrough: passedOn, peer: "192.0.2.1" };

/** A download whose file holds all of TEXT. */
function received(folder: string): Download {
  const path = `${folder}/growing`;
  Deno.writeTextFileSync(path, TEXT);
  const file = new GrowingFile(path);
  const download = new Download({ name: NAME, file, startedAtMs: 0, origin: "client" });
  download.advance({ type: "opened", fileSize: TEXT.length });
  download.advance({ type: "bytes", received: TEXT.length });
  return download;
}

Deno.test("download: a reader that begins after the file was moved gets all of it", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using use = download.file.use();
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  Deno.renameSync(`${folder.path}/growing`, `${folder.path}/moved`);
  assert.equal(await new Response(download.read(CLIENT, 0)).text(), TEXT);
  assert.equal(new TextDecoder().decode(download.bytes()), TEXT);
  use[Symbol.dispose]();
});

Deno.test("download: a reader outlives the download's own use of the file", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  const use = download.file.use();
  const body = download.read(CLIENT, 4);
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  use[Symbol.dispose]();
  assert.equal(await new Response(body).text(), TEXT.slice(4));
});

Deno.test("download: before the check result all but the last byte is given", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  const reader = download.read(CLIENT, 0).getReader();
  const first = await reader.read();
  assert.equal(new TextDecoder().decode(first.value), TEXT.slice(0, -1));
  const last = reader.read();
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  assert.equal(new TextDecoder().decode((await last).value), TEXT.slice(-1));
  assert.equal((await reader.read()).done, true);
});

Deno.test("download: a standstill here does not end the wait for a small file", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  const released = download.settledIfSmall(TEXT.length).then(() => download.released);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100);
  setTimeout(() => download.advance({ type: "end", fileSize: TEXT.length, released: true }), 0);
  assert.equal(await released, true);
});

Deno.test("download: readers of a verified file outlive the failure to store it", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  const reader = download.read(CLIENT, 0).getReader();
  const first = await reader.read();
  const late = download.read(CLIENT, 4);
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  download.advance({ type: "verified" });
  download.advance({ type: "error", reason: "the database is locked" });
  download.file.remove();
  const last = await reader.read();
  assert.equal(new TextDecoder().decode(first.value), TEXT.slice(0, -1));
  assert.equal(new TextDecoder().decode(last.value), TEXT.slice(-1));
  assert.equal((await reader.read()).done, true);
  assert.equal(await new Response(late).text(), TEXT.slice(4));
});

Deno.test("download: readers in the middle fail with it", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  const reader = download.read(CLIENT, 0).getReader();
  await reader.read();
  download.advance({ type: "error", reason: "cut" });
  await assert.rejects(reader.read(), /cut/);
});

Deno.test("download: two reads at different places do not disturb each other", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  const texts = [0, 4, 10].map((start) => new Response(download.read(CLIENT, start, 20)).text());
  assert.deepEqual(await Promise.all(texts), [0, 4, 10].map((start) => TEXT.slice(start, 20)));
});

Deno.test("download: a client that leaves while it waits ends its read, and no other", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  const use = download.file.use();
  const [leaving, staying] = [0, 1].map(() => new BodyReader(download.read(CLIENT, 0)));
  assert.ok(leaving !== undefined && staying !== undefined);
  for (const reader of [leaving, staying]) {
    await reader.next();
    await reader.write(async (bytes) => bytes.length, false);
  }
  const reads = [leaving.next(), staying.next()];
  leaving.cancel();
  assert.equal(await reads[0], 0);
  leaving[Symbol.dispose]();
  download.advance({ type: "end", fileSize: TEXT.length, released: true });
  assert.equal(await reads[1], 1);
  staying[Symbol.dispose]();
  use[Symbol.dispose]();
});

Deno.test("download: a client that leaves ends its pass-through", async () => {
  using folder = tempFolder();
  const download = received(folder.path);
  using _use = download.file.use();
  const ended = Promise.withResolvers<void>();
  const passThrough = () =>
    Object.assign(passedOn(), {
      next: () => new Promise<never>(() => undefined),
      return() {
        ended.resolve();
        return Promise.resolve({ done: true, value: undefined } as const);
      },
    });
  using reader = new BodyReader(download.read({ passThrough, peer: undefined }, 0));
  assert.equal(await reader.next(), TEXT.length - 1);
  download.advance({ type: "error", reason: "the disk is full", mayPassThrough: true });
  const last = reader.next();
  reader.cancel();
  assert.equal(await last, 0);
  await ended.promise;
});

/** Nothing of these downloads is passed through. */
async function* passedOn(): AsyncGenerator<Bytes, void> {}
