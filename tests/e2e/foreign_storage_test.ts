import assert from "node:assert/strict";
import { messageOf } from "../../src/base/failure.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { runLarder } from "../support/run_larder.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const object = makeStoreObject({ name: "small" });

testUnless(
  S3_UNAVAILABLE,
  "a larder with another database refuses a bucket, and leaves its objects",
  async () => {
    if (server === undefined) return;
    using one = tempFolder();
    using other = tempFolder();
    const flags = s3Flags(server.bucket());
    await checkRefusal({
      owner: { ...flags, "cache-storage-local": one.path },
      stranger: { ...flags, "cache-storage-local": other.path },
      says: /Cannot use S3 bucket bucket-1: .* database \(sqlite:.*db.sqlite on .*\); .*--adopt/,
    });
  },
);

Deno.test("a larder with another database refuses a folder, and leaves its files", async () => {
  using storage = tempFolder();
  using other = tempFolder();
  const flags = { "cache-storage-local": storage.path };
  const url = `sqlite:${other.path}/db.sqlite`;
  await checkRefusal({
    owner: flags,
    stranger: { ...flags, "cache-database-url": url },
    says: /\/nar: its NAR files belong to another database \(db.sqlite beside them\); .*--adopt/,
  });
  const adopting = ["fsck", "--adopt", "--repair", "--cache-database-url", url];
  const { out } = await runLarder([...adopting, "--cache-storage-local", storage.path]);
  assert.match(out, /no row.*mended|1 problem, 1 mended/);
});

interface Refusal {
  readonly owner: LarderFlags;
  readonly stranger: LarderFlags;
  readonly says: RegExp;
}

async function checkRefusal({ owner, stranger, says }: Refusal): Promise<void> {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const upstreamFlags = {
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
  const nar = async (port: number) => {
    const { status, headers } = await servedNar(
      port,
      await servedNarinfo(port, object.storePathHash),
    );
    return `${status} ${headers.get("x-cache")}`;
  };
  {
    await using larder = await startLarder({ ...owner, ...upstreamFlags });
    assert.match(await nar(larder.port), /^200 (MISS|JOINED)$/);
    await larder.logged("nar cached successfully");
  }
  const said = await startLarder({ ...stranger, ...upstreamFlags }).then(
    async (larder) => {
      await using _larder = larder;
      await larder.logged("reconciled");
      return "it has started";
    },
    messageOf,
  );
  await upstream.stop();
  await using larder = await startLarder({ ...owner, ...upstreamFlags });
  assert.equal(await nar(larder.port), "200 HIT");
  assert.match(said, says);
}
