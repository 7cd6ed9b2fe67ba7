import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { Download } from "../../src/cache/download/run_download.ts";
import type { DownloadEvent } from "../../src/cache/verify/download_state.ts";
import { GrowingFile } from "../../src/cache/download/growing_file.ts";
import { BodyReader } from "../../src/http/server/answer_writer.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { checkProperty } from "../support/property.ts";
import { tempFolder } from "../support/temp_folder.ts";
import type { Bytes } from "../../src/base/bytes.ts";

const NAME = narName(sha256FromDigest(new Uint8Array(32)), "none");
const FILE = Uint8Array.from({ length: 400_000 }, (_, at) => 1 + (at * 7 + (at >> 8)) % 255);

/** A change lets a reader look again and fill some buffers, then it waits. */
const CHECKS_MAX = 60;

const whole = { type: "end", fileSize: FILE.length } as const;

/** Events after the last bytes. The first ones let a client complete its body. */
const ENDS: Readonly<Record<string, readonly DownloadEvent[]>> = {
  "kept": [{ ...whole, released: true }, { type: "kept" }],
  "kept late": [{ ...whole, released: false }, { type: "verified" }, { type: "kept" }],
  "not stored": [
    { ...whole, released: false },
    { type: "verified" },
    { type: "error", reason: "disk" },
  ],
  "passed through": [{ type: "error", reason: "full", mayPassThrough: true }],
  "wrong": [{ ...whole, released: false }, { type: "error", reason: "wrong" }],
  "cut": [{ type: "error", reason: "cut" }],
  "too long": [
    { type: "bytes", received: FILE.length + 10 },
    { type: "error", reason: "too long" },
  ],
};
const BROKEN: readonly string[] = ["wrong", "cut", "too long"];

const stories = fc.record({
  knowsSize: fc.boolean(),
  /** Wrong bytes of a first source, which end in a new start if no client has any. */
  wrong: fc.option(fc.nat(FILE.length)),
  growths: fc.array(fc.nat(200_000), { maxLength: 5 }),
  end: fc.constantFrom(...Object.keys(ENDS)),
  /** Microtasks between two changes: one comes at each point of a read, or long after it. */
  turns: fc.array(fc.oneof(fc.nat(14), fc.constant(3 * CHECKS_MAX)), {
    minLength: 1,
    maxLength: 8,
  }),
  part: fc.constantFrom({ start: 0 }, { start: 0, end: 300_000 }, { start: 5_000, end: 5_001 }),
  client: fc.constantFrom("takes", "stalls", "streams"),
});

type Story = typeof stories extends fc.Arbitrary<infer Value> ? Value : never;

checkProperty(
  "download: whenever it changes, a client's body is all of its bytes, or an error",
  fc.asyncProperty(stories, async (story) => {
    using folder = tempFolder();
    const download = new WatchedDownload(`${folder.path}/growing`);
    using _use = download.file.use();
    const { start, end } = { end: undefined, ...story.part };

    const body = download.read({ passThrough, peer: undefined }, start, end);
    const reading = bytesOf(body, story.client).catch(() => undefined);
    const ending = await play(download, story);
    const got = await reading;

    assert.equal(download.spins, false);
    assert.equal(
      got === undefined,
      BROKEN.includes(ending),
      `${got?.length} bytes after ${ending}`,
    );
    if (got !== undefined) {
      assert.ok(Buffer.compare(got, FILE.subarray(start, end)) === 0, `${got.length} bytes`);
    }
  }),
);

/** Plays a story; returns how it ended. */
async function play(download: WatchedDownload, story: Story): Promise<string> {
  const { knowsSize, wrong, growths, turns } = story;
  const opened = { type: "opened", ...(knowsSize ? { fileSize: FILE.length } : {}) } as const;
  let step = 0;
  const happens = async (event: DownloadEvent) => {
    download.advance(event);
    const turn = turns[step++ % turns.length] ?? 0;
    for (let microtask = 0; microtask < turn; microtask++) await undefined;
  };
  let end = story.end;
  await happens(opened);
  if (wrong !== null) {
    download.write(new Uint8Array(wrong));
    await happens({ type: "bytes", received: wrong });
    if (download.hasBeenRead) end = "cut";
    else {
      await happens({ type: "startedOver" });
      await happens(opened);
    }
  }
  download.write(FILE);
  let received = wrong !== null && end === "cut" ? wrong : 0;
  for (const growth of growths) {
    received = Math.min(FILE.length, received + growth);
    await happens({ type: "bytes", received });
  }
  for (const event of ENDS[end] ?? []) await happens(event);
  return end;
}

/** A download that notices a reader that looks at it again and again. */
class WatchedDownload extends Download {
  readonly #path: string;
  readonly #watched: WatchedFile;
  #checks = 0;
  spins = false;

  constructor(path: string) {
    Deno.writeFileSync(path, new Uint8Array(0));
    const file = new WatchedFile(path);
    super({ name: NAME, file, startedAtMs: 0, origin: "client" });
    this.#path = path;
    this.#watched = file;
  }

  get hasBeenRead(): boolean {
    return this.#watched.hasBeenRead;
  }

  write(bytes: Uint8Array): void {
    Deno.writeFileSync(this.#path, bytes);
  }

  override advance(event: DownloadEvent): void {
    this.#checks = 0;
    super.advance(event);
  }

  override get fileSize(): number | undefined {
    if (++this.#checks > CHECKS_MAX) {
      this.spins = true;
      throw new Error("Cannot wait for a download: its reader looks too often");
    }
    return super.fileSize;
  }
}

class WatchedFile extends GrowingFile {
  hasBeenRead = false;

  override readInto(bytes: Bytes, position: number): void {
    this.hasBeenRead = true;
    super.readInto(bytes, position);
  }
}

/** All of a body, as one of three clients takes it. Throws its error. */
async function bytesOf(body: ReadableStream<Bytes>, client: string): Promise<Uint8Array> {
  if (client === "streams") return await new Response(body).bytes();
  const pieces: Uint8Array[] = [];
  using reader = new BodyReader(body);
  while (await reader.next() > 0) {
    while (reader.piece.length > 0) await reader.write(take, client === "stalls");
  }
  return Buffer.concat(pieces);

  async function take(bytes: Uint8Array): Promise<number> {
    pieces.push(bytes.slice());
    if (client === "stalls") reader.shed();
    return bytes.length;
  }
}

/** Another source of the same file. */
async function* passThrough(
  { start, end = FILE.length }: { readonly start: number; readonly end: number | undefined },
): AsyncGenerator<Bytes> {
  const last = Math.min(end, FILE.length);
  for (let at = start; at < last; at += 30_000) yield FILE.slice(at, Math.min(last, at + 30_000));
}
