import assert from "node:assert/strict";
import { meaningOf } from "../../../src/base/failure.ts";
import { readReferenceGraph } from "../../../src/closure/reference_graph.ts";
import { clock } from "../../../src/runtime/current.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { changesOf, hashOfNode } from "../../support/stored_graph.ts";

const none = { pathsMax: Infinity, referencesMax: Infinity, untilMs: Infinity };

for (
  const [name, limits] of [
    ["paths", { ...none, pathsMax: 2 }],
    ["references", { ...none, referencesMax: 2 }],
    ["time", { ...none, untilMs: 0 }],
  ] as const
) {
  Deno.test(`reference graph: beyond the limit of ${name} it is given up, overloaded`, async () => {
    await using metadata = new MemoryMetadataStore();
    await metadata.apply(changesOf([{ references: [1, 2], nar: 0 }, { references: [2], nar: 1 }]));
    const read = (within: typeof none) =>
      readReferenceGraph(metadata, [hashOfNode(0)], { slice: clock.slice(), limits: within });

    assert.equal((await read(none)).narOf.length, 3);
    await assert.rejects(read(limits), (error) => meaningOf(error).status === 503);
  });
}
