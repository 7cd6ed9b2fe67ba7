import assert from "node:assert/strict";
import type { KeyKeeper } from "../../src/metadata/metadata_store.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import type { Clauses } from "./contract.ts";

/** The key of one database, as two members have it open. */
export interface SharedKey {
  readonly one: KeyKeeper;
  readonly other: KeyKeeper;
}

const newKey = () => generateSecretKey("larder.example").text;

export const keyKeeperClauses: Clauses<SharedKey> = {
  "a new database has no signing key": async ({ one, other }) => {
    assert.equal(await one.signingKey(), undefined);
    assert.equal(await other.signingKey(), undefined);
  },

  "adoptSigningKey() adds the first key, and all members have it": async ({ one, other }) => {
    const key = newKey();
    assert.equal(await one.adoptSigningKey(key), key);
    assert.equal(await one.signingKey(), key);
    assert.equal(await other.signingKey(), key);
  },

  "adoptSigningKey() leaves the key that is there, and resolves to it": async ({ one, other }) => {
    const key = await one.adoptSigningKey(newKey());
    assert.equal(await other.adoptSigningKey(newKey()), key);
    assert.equal(await one.adoptSigningKey(newKey()), key);
    assert.equal(await other.signingKey(), key);
  },

  "of keys that are adopted at once one stays, and all learn which": async ({ one, other }) => {
    const keys = Array.from({ length: 8 }, newKey);
    const adopted = await Promise.all(
      keys.map((key, at) => (at % 2 === 0 ? one : other).adoptSigningKey(key)),
    );
    const [kept = ""] = adopted;
    assert.ok(keys.includes(kept));
    assert.deepEqual(adopted, keys.map(() => kept));
    assert.equal(await one.signingKey(), kept);
  },
};
