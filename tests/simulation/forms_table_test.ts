import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { accelRedirect, type HandOver, storeRedirect } from "../../src/http/routes/nar.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import type { StoredName } from "../../src/nix/stored_name.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { PlayedLocks } from "./played_locks.ts";
import { NARS, TEMP } from "./world_member.ts";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import {
  BEHIND,
  OBJECT,
  playScene,
  type Scene,
  type SceneOptions,
  sceneTest,
  type Seen,
} from "./scene.ts";

// Virtual time plays no back ends on other machines. Their cells are elsewhere, in tests/: members on
// PostgreSQL, Redis and S3 with its redirect in e2e/recompression_back_ends_test.ts, a real nginx in
// e2e/accel_redirect_test.ts, export and import in e2e/former_names_test.ts, migrations in
// e2e/recompressed_storage_test.ts, a real Nix in e2e/recompression_test.ts, brotli in http/nar_forms_test.ts.

// Each line is a cell. `came`: the upstream's compression. `kept`: what larder has of the NAR when
// it is asked. `asked`: the ending of the name, which larder's narinfo has had once. `answer`: the
// bytes; "file": those of a file as it was made, "spoken": those that larder makes of the NAR,
// "unsized": these without their size. "404": nothing could bring it.
const TABLE = `
came   kept       upstream  asked  answer
xz     came       there     xz     file HIT
xz     came       there     zst    spoken HIT
xz     came       gone      xz     file HIT
xz     came       gone      zst    spoken HIT
xz     zstd       there     xz     spoken HIT
xz     zstd       there     zst    file HIT
xz     zstd       gone      xz     spoken HIT
xz     zstd       gone      zst    file HIT
xz     evicted    there     xz     file MISS
xz     evicted    there     zst    spoken MISS
xz     evicted    gone      xz     404
xz     evicted    gone      zst    404
xz     rows lost  there     xz     file MISS
xz     rows lost  there     zst    unsized MISS
xz     rows lost  gone      xz     404
xz     rows lost  gone      zst    404
gzip   came       there     gz     file HIT
gzip   came       there     zst    spoken HIT
gzip   came       gone      gz     file HIT
gzip   came       gone      zst    spoken HIT
gzip   zstd       there     gz     spoken HIT
gzip   zstd       there     zst    file HIT
gzip   zstd       gone      gz     spoken HIT
gzip   zstd       gone      zst    file HIT
gzip   evicted    there     gz     file MISS
gzip   evicted    there     zst    spoken MISS
gzip   evicted    gone      gz     404
gzip   evicted    gone      zst    404
gzip   rows lost  there     gz     file MISS
gzip   rows lost  there     zst    unsized MISS
gzip   rows lost  gone      gz     404
gzip   rows lost  gone      zst    404
bzip2  came       there     bz2    file HIT
bzip2  came       there     zst    spoken HIT
bzip2  came       gone      bz2    file HIT
bzip2  came       gone      zst    spoken HIT
bzip2  zstd       there     bz2    spoken HIT
bzip2  zstd       there     zst    file HIT
bzip2  zstd       gone      bz2    spoken HIT
bzip2  zstd       gone      zst    file HIT
bzip2  evicted    there     bz2    file MISS
bzip2  evicted    there     zst    spoken MISS
bzip2  evicted    gone      bz2    404
bzip2  evicted    gone      zst    404
bzip2  rows lost  there     bz2    file MISS
bzip2  rows lost  there     zst    unsized MISS
bzip2  rows lost  gone      bz2    404
bzip2  rows lost  gone      zst    404
none   came       there     nar    file HIT
none   came       there     zst    spoken HIT
none   came       gone      nar    file HIT
none   came       gone      zst    spoken HIT
none   zstd       there     nar    file HIT
none   zstd       there     zst    file HIT
none   zstd       gone      nar    file HIT
none   zstd       gone      zst    file HIT
none   evicted    there     nar    file MISS
none   evicted    there     zst    spoken MISS
none   evicted    gone      nar    404
none   evicted    gone      zst    404
none   rows lost  there     nar    file MISS
none   rows lost  there     zst    unsized MISS
none   rows lost  gone      nar    404
none   rows lost  gone      zst    404
`;

// Each line is a break: a client got some bytes of a name, and comes back for the rest of them.
const BREAKS = `
kept          asked  then         rest
came          xz     recompress   of these bytes
came          zst    recompress   of these bytes
zstd          xz     recompress   of these bytes
zstd          zst    recompress   of these bytes
evicted       xz     recompress   of these bytes
evicted       zst    recompress   of these bytes
rows lost     xz     recompress   of these bytes
rows lost     zst    recompress   all bytes anew
came          xz     an hour      of the new form
came          zst    an hour      of the new form
came          bz2    recompress   of these bytes
zstd          bz2    recompress   of these bytes
evicted       bz2    recompress   of these bytes
came          bz2    an hour      of the new form
`;

// Each line is a NAR that a larder behind this one takes from it. `knows`: the ending of the name
// that it has from the narinfo, whose client remembers its own. `has`: whether it keeps the file.
// `front`: what this larder has when the other one is asked again. "unsaved": right, and as often as
// it is asked, because no narinfo is known.
const IN_A_ROW = `
front         upstream  knows  has       answer
came          there     xz     the file  HIT
zstd          there     xz     the file  HIT
zstd          there     xz     nothing   MISS
zstd          gone      xz     nothing   MISS
zstd          there     zst    the file  HIT
zstd          there     zst    nothing   MISS
zstd          gone      zst    nothing   MISS
evicted       there     xz     nothing   MISS
evicted       there     zst    the file  HIT
evicted       gone      zst    the file  HIT
evicted       there     zst    nothing   MISS
evicted       gone      zst    nothing   404
rows lost     there     xz     nothing   MISS
rows lost     there     zst    nothing   MISS
rows lost     gone      zst    nothing   404
came          there     xz     no rows   unsaved
zstd          there     xz     no rows   MISS
zstd          gone      xz     no rows   MISS
zstd          there     zst    no rows   MISS
zstd          gone      zst    no rows   MISS
evicted       there     zst    no rows   MISS
evicted       gone      zst    no rows   404
rows lost     there     xz     no rows   unsaved
rows lost     there     zst    no rows   unsaved
zstd          there     bz2    the file  HIT
zstd          there     bz2    nothing   MISS
zstd          gone      bz2    nothing   MISS
zstd          gone      bz2    no rows   MISS
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

/** Of the bytes at a break, and behind it. */
const BEGUN_BYTES = 250_000;
const HOUR_MS = 3_600_000;

const FIELDS = ["content-length", "content-range", "etag", "accept-ranges", "x-cache"];

const AT_STORE = {
  locate: async (at: StoredName) => new URL(`https://store.test/${at}`),
};

const redirect = accelRedirect((at) => `/files/${at}`);
const toNginx: HandOver = (answer, plan, request) =>
  redirect(answer, plan, { ...request, ofTrustedProxy: true });

for (const line of TABLE.trim().split("\n").slice(1)) {
  const [came, kept, upstream, ending, answer] = line.split(/\s{2,}/);
  assert.ok(came && kept && ending && answer, line);
  const { asked } = askedOf(ending);
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

for (const line of BREAKS.trim().split("\n").slice(1)) {
  const [kept = "", ending = "", then = "", rest = ""] = line.split(/\s{2,}/);
  const { asked, came } = askedOf(ending);
  sceneTest(
    `forms: a client that broke off in ${ending}, kept: ${kept}, then ${then}: the rest is ${rest}`,
    { upstreams: [{ compression: came }], recompresses: true },
    async (scene) => {
      const { former, zstd } = await keptAs(scene, kept as Kept);
      const path = asked === "zstd" ? zstd : former.path;
      const begun = await scene.begin(path, BEGUN_BYTES);
      await scene.downloadsOver();
      if (then === "an hour") await scene.pause(HOUR_MS + 1_000);
      await scene.recompress();
      const isNew = rest === "of the new form";
      if (kept === "came") assert.equal(await scene.narPath() === zstd, isNew, "it is swapped");
      const { seen } = await asBoth(scene, path, { range: `bytes=${begun.length}-` });
      if (rest === "all bytes anew") {
        assert.equal(seen.status, 200);
        return await assertNar(seen.bytes, asked);
      }
      assert.equal(seen.status, 206);
      const all = Buffer.concat([begun, seen.bytes]);
      if (!isNew) return await assertNar(all, asked);
      assertSameBytes(seen.bytes, (await scene.get(path)).bytes.subarray(begun.length));
    },
  );
}

for (const line of IN_A_ROW.trim().split("\n").slice(1)) {
  const [front = "", upstream = "", knows = "", has = "", answer = ""] = line.split(/\s{2,}/);
  const { asked, came } = askedOf(knows);
  sceneTest(
    `forms: a larder behind, here: ${front}, upstream ${upstream}, it knows ${knows}, has ${has}: ${answer}`,
    { upstreams: [{ compression: came }], recompresses: true, hasOneBehind: true },
    async (scene) => {
      if (knows === "zst") await keptAs(scene, "zstd");
      const path = await scene.narPath(OBJECT, BEHIND);
      assert.ok(path.endsWith(`.${knows}`));
      const first = await scene.request("GET", path, {}, undefined, BEHIND);
      await assertNar(first.bytes, asked);
      await scene.downloadsOver();
      if (knows !== "zst") await keptAs(scene, front as Kept);
      else if (front === "evicted") await scene.evict(await scene.narPath());
      else if (front === "rows lost") await scene.loseRows();
      if (has === "nothing") await scene.evict(path, BEHIND);
      if (has === "no rows") await scene.loseRows(BEHIND);
      if (upstream === "gone") scene.behave(0, { state: "refused" });

      const { seen } = await asBoth(scene, path, {}, BEHIND);
      if (answer === "unsaved") return await assertNar(seen.bytes, asked);
      if (answer === "404") return assert.equal(seen.status, 404);
      assert.equal(seen.status, 200);
      assert.equal(seen.headers.get("x-cache"), answer);
      await assertNar(seen.bytes, asked);
      await scene.downloadsOver();
      const warm = await asBoth(scene, path, {}, BEHIND);
      assert.equal(warm.seen.headers.get("x-cache"), "HIT");
      await assertNar(warm.seen.bytes, asked);
      // The file of the lost row is left.
      const problems = (await scene.fsck(BEHIND)).map(({ kind }) => kind);
      assert.deepEqual(problems, has === "no rows" ? ["stray"] : []);
      const text = new TextDecoder().decode((await scene.narinfo(OBJECT, BEHIND)).bytes);
      const { url, fileSize, fileHash, narHash } = parseNarinfo(text);
      const told = (await asBoth(scene, `/${url}`, {}, BEHIND)).seen.bytes;
      assert.deepEqual([fileSize, narHash], [told.length, OBJECT.narHash]);
      assert.equal(fileHash, sha256FromDigest(createHash("sha256").update(told).digest()));
    },
  );
}

sceneTest(
  "forms: a store redirects to the object in zstd, and to none for the former name",
  { upstreams: [{ compression: "xz" }], recompresses: true, handOver: storeRedirect(AT_STORE) },
  async (scene) => {
    const { former, zstd } = await keptAs(scene, "zstd");
    const { status, headers } = await scene.get(zstd);
    assert.equal(status, 307);
    await assertNar(await storedAt(headers.get("location")), "zstd");
    const { seen } = await asBoth(scene, former.path);
    assert.equal(seen.status, 200);
    await assertNar(seen.bytes, "xz");
  },
);

sceneTest(
  "forms: nginx gets the location of the file in zstd, and the bytes of the former name",
  { upstreams: [{ compression: "xz" }], recompresses: true, handOver: toNginx },
  async (scene) => {
    const { former, zstd } = await keptAs(scene, "zstd");
    const wish = { "x-sendfile-type": "X-Accel-Redirect" };
    const { headers, bytes } = await scene.get(zstd, wish);
    assert.equal(bytes.length, 0);
    await assertNar(await storedAt(headers.get("x-accel-redirect")), "zstd");
    const { seen } = await asBoth(scene, former.path, wish);
    await assertNar(seen.bytes, "xz");
  },
);

sceneTest(
  "forms: an export has the file in zstd, and the narinfo of it",
  { upstreams: [{ compression: "xz" }], recompresses: true },
  async (scene) => {
    const { zstd } = await keptAs(scene, "zstd");
    const { seen } = await asBoth(scene, zstd);
    const narinfo = await scene.exportTo("/export", OBJECT);
    assertSameBytes(scene.files.bytesOf(`/export${zstd}`), seen.bytes);
    const { url, compression, fileSize } = parseNarinfo(narinfo);
    assert.deepEqual([`/${url}`, compression, fileSize], [zstd, "zstd", seen.bytes.length]);
    assert.equal(scene.files.paths("/export/nar").length, 1);
  },
);

Deno.test("forms: a process that is killed at any step of the swap leaves one whole file", async () => {
  const options: SceneOptions = {
    upstreams: [{ compression: "xz" }],
    recompresses: true,
    limitBytes: 1e9,
  };
  for (let at = 0, isKilled = true; isKilled; at++) {
    isKilled = await playScene(options, async (scene) => {
      const { former, zstd } = await keptAs(scene, "came");
      scene.killAtCall(at);
      void scene.recompress();
      await scene.pause(10_000);
      if (scene.isUp) {
        scene.killAtCall(Infinity);
        return false;
      }
      await scene.startAgain();
      // Its remains go once it is dead to others.
      await scene.pause(3 * 60_000);
      const kept = scene.files.paths(NARS);
      assert.equal(kept.length, 1, `killed at call ${at}: ${kept}`);
      assert.deepEqual(await scene.fsck(), [], `killed at call ${at}`);
      assert.deepEqual(scene.files.paths(TEMP).filter((path) => path.endsWith(".part")), []);
      const reserved = scene.database.prepare("SELECT sum(reserved_bytes) AS bytes FROM member");
      assert.equal(reserved.get()?.["bytes"], 0, `killed at call ${at}`);
      scene.behave(0, { state: "refused" });
      for (const [path, asked] of [[former.path, "xz"], [zstd, "zstd"]] as const) {
        const { seen } = await asBoth(scene, path);
        assert.equal(seen.headers.get("x-cache"), "HIT");
        await assertNar(seen.bytes, asked);
      }
      await scene.recompress();
      assert.equal(await scene.narPath(), zstd);
      assert.equal(scene.files.paths(NARS).length, 1);
      return true;
    });
    if (!isKilled) assert.ok(at > 20, `the swap has ${at} calls`);
  }
});

for (const kept of ["came", "zstd"] as const) {
  sceneTest(
    `forms: each member answers each name, kept: ${kept}`,
    {
      ...{ upstreams: [{ compression: "xz" }], recompresses: true },
      ...{ locks: new PlayedLocks(), memberCount: 3 },
    },
    async (scene) => {
      const path = await scene.narPath();
      for (const member of scene.members) {
        await assertNar((await scene.request("GET", path, {}, undefined, member)).bytes, "xz");
      }
      await scene.downloadsOver();
      // The members look by themselves; each spares what was used within the hour.
      if (kept === "zstd") await scene.pause(HOUR_MS + 5 * 60_000);
      const zstd = path.replace(".xz", ".zst");
      assert.equal(scene.files.paths(NARS).length, 1);
      for (const member of scene.members) {
        assert.equal(await scene.narPath(OBJECT, member), kept === "zstd" ? zstd : path);
        for (const [name, asked] of [[path, "xz"], [zstd, "zstd"]] as const) {
          const { seen } = await asBoth(scene, name, {}, member);
          assert.equal(seen.headers.get("x-cache"), "HIT");
          await assertNar(seen.bytes, asked);
        }
      }
      assert.equal(scene.encoder.orders.length, kept === "zstd" ? 1 : 0, "by one member");
      assert.deepEqual(await scene.fsck(), []);
    },
  );
}

/** What a client asks for, and what came where that says nothing else. */
function askedOf(ending: string): { readonly asked: Compression; readonly came: Came } {
  const asked = (Object.keys(COMPRESSIONS) as Compression[])
    .find((one) => `.nar${COMPRESSIONS[one].extension}`.endsWith(`.${ending}`));
  assert.ok(asked, ending);
  return { asked, came: asked === "bzip2" ? asked : "xz" };
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
  // The file of the lost row is left.
  const problems = (await scene.fsck()).map(({ kind }) => kind);
  assert.deepEqual(problems, kept === "rows lost" ? ["stray"] : []);
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
  assert.equal(await scene.narPath(), zstd, "it is kept in zstd");
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
  const rest = await scene.get(path, { range: `bytes=${BEGUN_BYTES}-` });
  assertSameBytes(rest.bytes, bytes.subarray(BEGUN_BYTES));
  const etag = headers.get("etag");
  assert.equal((await scene.get(path, { "if-none-match": `${etag}` })).status, 304);
}

async function assertNar(bytes: Uint8Array, compression: Compression, one = OBJECT) {
  const { length: narSizeMax } = one.nar;
  const file = ReadableStream.from([new Uint8Array(bytes)]);
  const copy = (piece: Uint8Array) => new Uint8Array(piece);
  const pieces = await Array.fromAsync(decoded(file, { compression, narSizeMax }), copy);
  assertSameBytes(new Uint8Array(Buffer.concat(pieces)), one.nar);
}

/** The stored object that another server is told to send. */
async function storedAt(location: string | null): Promise<Uint8Array> {
  const at = (location ?? "").split("/").at(-1) as StoredName;
  await using stored = await new LocalNarStore(NARS).open(at, {
    signal: new AbortController().signal,
  });
  assert.ok(stored, `${location} is stored`);
  return await stored.bytes();
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
