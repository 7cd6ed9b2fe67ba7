import assert from "node:assert/strict";
import type { ListedNarinfo } from "../../../src/metadata/metadata_store.ts";
import { StoredPaths } from "../../../src/metadata/stored_paths.ts";
import { NIX32_ALPHABET } from "../../../src/nix/nix32.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { SeededDice } from "../../simulation/seeded_dice.ts";
import { PlayedTime } from "../../support/played_time.ts";

const dice = new SeededDice(7);

function randomHash(): StorePathHash {
  const chars = Array.from({ length: 32 }, () => NIX32_ALPHABET[dice.below(32)]);
  return chars.join("") as StorePathHash;
}

/** Rows in the order of their hashes, a page for each call. */
function rowsOf(hashes: readonly StorePathHash[]) {
  const rows = hashes.toSorted().map((storePathHash): ListedNarinfo => (
    { storePathHash, usedAtMs: 0 }
  ));
  const state = { calls: 0, failures: 0 };
  return {
    state,
    listNarinfos(after: string, countMax: number) {
      state.calls++;
      if (state.failures > 0 && state.failures-- > 0) return Promise.reject(new Error("away"));
      const rest = rows.filter(({ storePathHash }) => storePathHash > after);
      return Promise.resolve(rest.slice(0, countMax));
    },
  };
}

Deno.test("stored paths: all rows are known in the end, also after failures", async () => {
  using time = new PlayedTime();
  const hashes = Array.from({ length: 5_000 }, randomHash);
  const rows = rowsOf(hashes);
  rows.state.failures = 2;
  using stored = new StoredPaths(rows);
  const learned = stored.learn();
  await time.advance(11_000);
  await learned;
  assert.ok(hashes.every((hash) => stored.has(hash)));
  assert.equal(rows.state.calls, 5);
});

Deno.test("stored paths: of those that are not stored, hardly one counts", () => {
  using stored = new StoredPaths(rowsOf([]));
  for (let count = 0; count < 30_000; count++) stored.add(randomHash());
  let wrong = 0;
  for (let count = 0; count < 30_000; count++) if (stored.has(randomHash())) wrong++;
  assert.ok(wrong <= 1, `${wrong} of 30,000`);
});

Deno.test("stored paths: a second look begins again, after the first one", async () => {
  using time = new PlayedTime();
  const rows = rowsOf([randomHash()]);
  using stored = new StoredPaths(rows);
  void stored.learn();
  const second = stored.learn();
  await time.advance(1_000);
  await second;
  assert.equal(rows.state.calls, 2);
});
