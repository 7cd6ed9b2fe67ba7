import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { OBJECT, type Scene, type SceneOptions, sceneTest, type Seen } from "./scene.ts";

// Each line is a cell. `came`: the upstream's compression. `kept`: what larder has of the NAR when
// it is asked. `asked`: the ending of the name, which larder's narinfo has had once. `answer`: the
// bytes; "file": those of a file as it was made, "spoken": those that larder makes of the NAR,
// "unsized": these without their size. "404": nothing could bring it.
const TABLE = `
came  kept          upstream  asked  answer
xz    came          there     xz     file HIT
xz    came          there     zst    spoken HIT
xz    came          gone      xz     file HIT
xz    came          gone      zst    spoken HIT
xz    zstd          there     xz     spoken HIT
xz    zstd          there     zst    file HIT
xz    zstd          gone      xz     spoken HIT
xz    zstd          gone      zst    file HIT
xz    evicted       there     xz     file MISS
xz    evicted       there     zst    spoken MISS
xz    evicted       gone      xz     404
xz    evicted       gone      zst    404
xz    rows lost     there     xz     file MISS
xz    rows lost     there     zst    unsized MISS
xz    rows lost     gone      xz     404
xz    rows lost     gone      zst    404
gzip  came          there     gz     file HIT
gzip  came          there     zst    spoken HIT
gzip  came          gone      gz     file HIT
gzip  came          gone      zst    spoken HIT
gzip  zstd          there     gz     spoken HIT
gzip  zstd          there     zst    file HIT
gzip  zstd          gone      gz     spoken HIT
gzip  zstd          gone      zst    file HIT
gzip  evicted       there     gz     file MISS
gzip  evicted       there     zst    spoken MISS
gzip  evicted       gone      gz     404
gzip  evicted       gone      zst    404
gzip  rows lost     there     gz     file MISS
gzip  rows lost     there     zst    unsized MISS
gzip  rows lost     gone      gz     404
gzip  rows lost     gone      zst    404
none  came          there     nar    file HIT
none  came          there     zst    spoken HIT
none  came          gone      nar    file HIT
none  came          gone      zst    spoken HIT
none  zstd          there     nar    file HIT
none  zstd          there     zst    file HIT
none  zstd          gone      nar    file HIT
none  zstd          gone      zst    file HIT
none  evicted       there     nar    file MISS
none  evicted       there     zst    spoken MISS
none  evicted       gone      nar    404
none  evicted       gone      zst    404
none  rows lost     there     nar    file MISS
none  rows lost     there     zst    unsized MISS
none  rows lost     gone      nar    404
none  rows lost     gone      zst    404
`;

type Came = NonNullable<SceneOptions["upstreams"][number]["compression"]>;
type Kept = "came" | "zstd" | "evicted" | "rows lost";

interface Cell {
  readonly came: Came;
  readonly kept: Kept;
  readonly isUpstreamThere: boolean;
  readonly asked: Compression;
  readonly answer: string;
}

const FIELDS = ["content-length", "content-range", "etag", "accept-ranges", "x-cache"];

for (const line of TABLE.trim().split("\n").slice(1)) {
  const [came, kept, upstream, ending, answer] = line.split(/\s{2,}/);
  const asked = (Object.keys(COMPRESSIONS) as Compression[])
    .find((one) => `.nar${COMPRESSIONS[one].extension}`.endsWith(`.${ending}`));
  assert.ok(came && kept && asked && answer, line);
  const cell: Cell = {
    ...{ came: came as Came, kept: kept as Kept, asked, answer },
    isUpstreamThere: upstream === "there",
  };
  sceneTest(
    `forms: came in ${came}, kept: ${kept}, upstream ${upstream}, asked for ${ending}: ${answer}`,
    { upstreams: [{ compression: cell.came }], recompresses: true },
    (scene) => playCell(scene, cell),
  );
}

async function playCell(scene: Scene, { came, kept, asked, ...cell }: Cell): Promise<void> {
  const { former, zstd } = await keptAs(scene, kept);
  if (!cell.isUpstreamThere) scene.behave(0, { state: "refused" });
  const path = asked === came ? former.path : zstd;
  const { seen } = await asBoth(scene, path);
  if (cell.answer === "404") return assert.equal(seen.status, 404);
  const [how = "", cacheResult] = cell.answer.split(" ");
  assert.equal(seen.status, 200);
  assert.equal(seen.headers.get("x-cache"), cacheResult);
  await assertNar(seen.bytes, asked);
  if (asked === came) assert.equal(equal(seen.bytes, former.seen.bytes), how === "file");
  assert.equal(seen.headers.has("content-length"), how !== "unsized");
  await scene.downloadsOver();
  if (how === "unsized") return;
  await assertParts(scene, path, seen);
}

/** Pulls the NAR, and brings it to a state. Resolves to its former path and its path in zstd. */
async function keptAs(scene: Scene, kept: Kept) {
  const path = await scene.narPath();
  const former = { path, seen: await scene.get(path) };
  await scene.downloadsOver();
  const zstd = path.replace(/\.nar.*$/, ".nar.zst");
  if (kept === "came") return { former, zstd };
  await scene.recompress();
  const { seen } = await asBoth(scene, zstd);
  assert.equal(seen.headers.get("x-cache"), "HIT", "it is kept in zstd");
  assert.equal(await scene.narPath(), zstd);
  if (kept === "evicted") await scene.evict(zstd);
  if (kept === "rows lost") await scene.loseRows();
  return { former, zstd };
}

/** The answers to HEAD and GET, which have the same facts. */
async function asBoth(scene: Scene, path: string, headers: HeadersInit = {}, member?: string) {
  const head = await scene.request("HEAD", path, headers, undefined, member);
  const seen = await scene.request("GET", path, headers, undefined, member);
  assert.equal(head.status, seen.status, `HEAD ${path}`);
  const factsOf = ({ headers }: Seen) => FIELDS.map((name) => [name, headers.get(name)]);
  if (seen.status < 400) assert.deepEqual(factsOf(head), factsOf(seen));
  assert.ok(seen.isWhole, "the response is whole");
  const length = seen.headers.get("content-length");
  if (seen.status < 300 && length !== null) assert.equal(seen.bytes.length, Number(length));
  return { head, seen };
}

/** Ranges of an answer, and a request with its ETag. */
async function assertParts(scene: Scene, path: string, { bytes, headers }: Seen): Promise<void> {
  const last = bytes.length - 1;
  for (const [from, to] of [[0, 0], [65_000, 66_000], [last - 50, last]] as const) {
    const { seen } = await asBoth(scene, path, { range: `bytes=${from}-${to}` });
    assert.equal(seen.status, 206);
    assertSameBytes(seen.bytes, bytes.subarray(from, to + 1));
  }
  const rest = await scene.get(path, { range: `bytes=400000-` });
  assertSameBytes(rest.bytes, bytes.subarray(400_000));
  const etag = headers.get("etag");
  assert.equal((await scene.get(path, { "if-none-match": `${etag}` })).status, 304);
}

async function assertNar(bytes: Uint8Array, compression: Compression, one = OBJECT) {
  const { length: narSizeMax } = one.nar;
  const file = ReadableStream.from([new Uint8Array(bytes)]);
  const pieces = await Array.fromAsync(decoded(file, { compression, narSizeMax }));
  assertSameBytes(new Uint8Array(Buffer.concat(pieces)), one.nar);
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
