import assert from "node:assert/strict";
import { sizeLimitOf } from "../../../src/app/size_limit_of.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { MemoryFiles } from "../../simulation/memory_files.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { PlayedChores } from "../../support/played_chores.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const FOLDERS = { temp: "/storage/tmp" };

function limitOf(...args: readonly string[]) {
  const flags = ["--cache-storage-local=/storage", ...args];
  return sizeLimitOf(resolveSettings(inputsOf({ args: flags })).settings, FOLDERS);
}

Deno.test("size limit: without an option a tenth of the storage's disk stays free", async () => {
  const files = new MemoryFiles({ capacityBytes: 1_000 });
  using _runtime = playRuntime({ files });
  for (const folder of ["/storage/nar", "/storage/tmp/member"]) {
    files.mkdirSync(folder, { recursive: true });
  }
  await files.writeTextFile("/storage/nar/kept", "x".repeat(100));
  await files.writeTextFile("/storage/tmp/member/partial", "x".repeat(50));
  const limit = limitOf();

  await limit.look(100);

  assert.deepEqual([limit.source, limit.bytes, limit.reserveBytes], ["disk", 900, 100]);
});

for (
  const [what, args, source, bytes] of [
    ["a size is a size", ["--cache-max-size=5G"], "set", 5 * 2 ** 30],
    ["unlimited is no limit", ["--cache-max-size=unlimited"], "unlimited", Infinity],
    ["a bucket has no limit", ["--cache-storage-s3-bucket=nars"], "bucket", Infinity],
    [
      "a size is one in a bucket too",
      ["--cache-storage-s3-bucket=nars", "--cache-max-size=5G"],
      "set",
      5 * 2 ** 30,
    ],
  ] as const
) {
  Deno.test(`size limit: ${what}`, () => {
    const limit = limitOf(...args);
    assert.deepEqual([limit.source, limit.bytes, limit.isOfDisk], [source, bytes, false]);
  });
}

Deno.test("size limit: larder looks at the disk each minute", async () => {
  const metadata = new MemoryMetadataStore();
  const member = { id: "larder", metadata, limitBytes: 1_000, elapse: () => undefined };
  await using chores = await PlayedChores.start(member);
  await chores.advance(3 * 60_000);
  assert.equal(chores.counted.looks, 3);
});
