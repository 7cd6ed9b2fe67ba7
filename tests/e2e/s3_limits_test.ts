import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { S3FaultProxy } from "../support/s3_fault_proxy.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { accountsOf, filesBelow } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

testUnless(
  S3_UNAVAILABLE,
  "S3: killed in the middle of a put, nothing of it is left or counted after the next start",
  async () => {
    if (server === undefined) return;
    using storage = tempFolder();
    await using proxy = new S3FaultProxy(server.port);
    const place = server.bucket(proxy.port);
    const object = makeStoreObject({ name: "large", size: 9_000_000 });
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const flags = {
      ...s3Flags(place),
      "cache-storage-local": storage.path,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
    };
    {
      await using larder = await startLarder(flags);
      const never = Promise.withResolvers<void>();
      const isSecond = (path: string) => path.includes("partNumber=2");
      proxy.fault = ({ path }) => isSecond(path) ? { holdUntil: never.promise } : undefined;
      await servedNar(larder.port, await servedNarinfo(larder.port, object.storePathHash));
      await eventually("a part is there", () => server.unfinishedIn(place).length > 0);
      larder.kill("SIGKILL");
      await larder.ended;
      never.resolve();
    }
    proxy.fault = () => undefined;
    assert.equal(server.unfinishedIn(place).length, 1);

    silenceMembers(storage.path);
    await using larder = await startLarder(flags);
    await larder.logged("interrupted nar settled");
    assert.deepEqual(server.unfinishedIn(place), []);
    assert.equal(filesBelow(`${server.folderOf(place)}/nar`).size, 0);
    const { countedBytes, keptFiles, pending } = accountsOf(storage.path);
    assert.deepEqual([countedBytes, keptFiles, pending], [0, 0, []]);
    const narinfo = await servedNarinfo(larder.port, object.storePathHash);
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
  },
);

testUnless(S3_UNAVAILABLE, "S3: eviction keeps the bucket within the limit", async () => {
  if (server === undefined) return;
  using storage = tempFolder();
  const place = server.bucket();
  const objects = Array.from(
    { length: 8 },
    (_, index) => makeStoreObject({ name: `object-${index}`, size: 1_000_000, seed: index }),
  );
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using larder = await startLarder({
    ...s3Flags(place),
    "cache-storage-local": storage.path,
    "cache-max-size": "4M",
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  });
  const bytesInBucket = () =>
    [...filesBelow(`${server.folderOf(place)}/nar`).values()].reduce((sum, size) => sum + size, 0);
  for (const object of objects) {
    const narinfo = await servedNarinfo(larder.port, object.storePathHash);
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    assert.ok(bytesInBucket() <= 4 << 20, `${bytesInBucket()} bytes`);
  }
  await eventually("the accounts are those of the bucket", () => {
    return accountsOf(storage.path).countedBytes === bytesInBucket();
  });
  assert.ok(bytesInBucket() >= 2_000_000, `it keeps what fits: ${bytesInBucket()}`);
});
