import assert from "node:assert/strict";
import { sealOf, unsettledMsOf } from "../../../src/storage/local/local_nar_store.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("seal: another inode, size or time makes another seal; nothing else does", () => {
  using folder = tempFolder();
  Deno.writeTextFileSync(`${folder.path}/nar`, "bytes");
  const info = Deno.statSync(`${folder.path}/nar`);
  const later = new Date(1_000_000);
  const changes: readonly Partial<Deno.FileInfo>[] = [
    { ino: (info.ino ?? 0) + 1 },
    { size: info.size + 1 },
    { mtime: later },
    { ctime: later },
  ];
  const seals = changes.map((change) => sealOf({ ...info, ...change }));

  assert.equal(new Set([sealOf(info), ...seals]).size, changes.length + 1);
  assert.equal(sealOf({ ...info, atime: later, mode: 0o400 }), sealOf(info));
});

Deno.test("seal: it proves nothing until the second of the last change is over", () => {
  const ctime = new Date(10_000);
  const looks = [10_000, 10_999, 11_500, 12_000, 60_000];
  assert.deepEqual(
    looks.map((nowMs) => unsettledMsOf({ ctime }, nowMs)),
    [2_000, 1_001, 500, 0, 0],
  );
  assert.equal(unsettledMsOf({ ctime }, 1_000), 2_000, "a file system's clock that is ahead");
});
