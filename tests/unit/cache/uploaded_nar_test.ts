import assert from "node:assert/strict";
import { ownNarRowOf } from "../../../src/cache/nar/nar_naming.ts";
import { type UploadedNar, uploadedNar } from "../../../src/cache/upload/narinfo_uploads.ts";
import type { Narinfo } from "../../../src/nix/narinfo.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { type NarName, narName } from "../../../src/nix/nar_name.ts";
import { newStoredName } from "../../../src/nix/stored_name.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { pushOf } from "../../support/uploading.ts";

const NARINFO = parseNarinfo((await pushOf(makeStoreObject({ name: "thing-1.0" }))).narinfo);
const { narHash, narSize, fileHash, fileSize, compression } = NARINFO;
assert.ok(fileHash !== undefined && fileSize !== undefined);
const PLAIN = narName(fileHash, compression);
const ROW = { name: PLAIN, compression, narHash, narSize, fileHash, fileSize };
const OWN = ownNarRowOf(ROW).name;

/** A finder that keeps the file under one name, and the names that it was asked for. */
function keptAs(name?: NarName) {
  const asked: NarName[] = [];
  const kept = { at: newStoredName(PLAIN), fileHash: ROW.fileHash, fileSize: ROW.fileSize };
  const find = async (one: NarName): Promise<UploadedNar | undefined> => {
    asked.push(one);
    return one === name ? { nar: { ...ROW, name }, kept } : undefined;
  };
  return { find, asked };
}

Deno.test("uploaded NAR: its narinfo finds it by its name, or by the name of its claims", async () => {
  for (const [name, names] of [[PLAIN, [PLAIN]], [OWN, [PLAIN, OWN]]] as const) {
    const { find, asked } = keptAs(name);
    assert.equal((await uploadedNar(NARINFO, find)).nar.name, name);
    assert.deepEqual(asked, names);
  }
});

Deno.test("uploaded NAR: without both of its unsigned claims there is no such name", async () => {
  const { fileHash: _hash, ...withoutHash } = NARINFO;
  const { fileSize: _size, ...withoutSize } = NARINFO;
  for (const narinfo of [withoutHash, withoutSize]) {
    const { find, asked } = keptAs();
    await assert.rejects(uploadedNar(narinfo, find), /expected nar\/.* before its narinfo/);
    assert.deepEqual(asked, [PLAIN]);
  }
});

const CONTRADICTIONS: Readonly<Record<string, Partial<Narinfo>>> = {
  FileSize: { fileSize: fileSize + 1 },
  NarSize: { narSize: narSize + 1 },
  NarHash: { narHash: fileHash as unknown as typeof narHash },
};

for (const [field, claim] of Object.entries(CONTRADICTIONS)) {
  Deno.test(`uploaded NAR: a narinfo with another ${field} than its file is refused`, async () => {
    const { find } = keptAs(PLAIN);
    await assert.rejects(uploadedNar({ ...NARINFO, ...claim }, find), new RegExp(`${field}:`));
  });
}
