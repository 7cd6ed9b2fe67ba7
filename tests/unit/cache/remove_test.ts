import assert from "node:assert/strict";
import { Remover } from "../../../src/cache/remove.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

Deno.test("remove: figures are counted anew behind a file that went, and behind no other", async () => {
  await using stocked = await StockedSpace.open(1_000);
  const { metadata, reads, space: { sweeper } } = stocked;
  let changes = 0;
  const remover = new Remover({ metadata, sweeper, reads, changed: () => void changes++ });
  const narName = await stocked.store("a", 450);

  assert.equal(await remover.nar(narOf("absent").name), false);
  const endRead = reads.begin(narName);
  assert.equal(await remover.nar(narName), false);
  assert.equal(changes, 0);

  endRead();
  assert.equal(await remover.nar(narName), true);
  assert.equal(changes, 1);
  assert.equal(await remover.nar(narName), false);
  assert.equal(changes, 1);
});
