import assert from "node:assert/strict";
import fc from "fast-check";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { type Sha256, sha256FromDigest } from "../../src/nix/hash.ts";
import { markedNarName, narName } from "../../src/nix/nar_name.ts";
import {
  narNameOf,
  newStoredName,
  parseStoredName,
  publishIdOf,
  storedName,
} from "../../src/nix/stored_name.ts";
import { checkProperty } from "../support/property.ts";

const sha: fc.Arbitrary<Sha256> = fc.uint8Array({ minLength: 32, maxLength: 32 })
  .map(sha256FromDigest);
const names = fc.tuple(sha, fc.option(sha), fc.constantFrom(...Object.keys(COMPRESSIONS)))
  .map(([hash, mark, compression]) => {
    const name = narName(hash, compression as Compression);
    return mark === null ? name : markedNarName(name, mark);
  });

checkProperty(
  "stored names: of any NAR name, with an id or from before ids, both parts are had back",
  fc.property(names, (name) => {
    const at = newStoredName(name);
    assert.equal(parseStoredName(at), at);
    assert.equal(narNameOf(at), name);
    assert.equal(storedName(name, publishIdOf(at)), at);
    assert.notEqual(newStoredName(name), at);

    const old = storedName(name, "");
    assert.equal(parseStoredName(old), old);
    assert.deepEqual([narNameOf(old), publishIdOf(old)], [name, ""]);
  }),
);

checkProperty(
  "stored names: a name that larder did not write is none",
  fc.property(names, fc.string({ minLength: 1, maxLength: 20 }), (name, more) => {
    const parsed = parseStoredName(`${name}${more}`);
    assert.ok(parsed === undefined || publishIdOf(parsed) === more.slice(1));
    assert.equal(parseStoredName(more), undefined);
  }),
);
