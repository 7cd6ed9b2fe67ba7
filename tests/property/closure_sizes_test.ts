import assert from "node:assert/strict";
import fc from "fast-check";
import { closureSizes } from "../../src/closure/closure_sizes.ts";
import { readReferenceGraph } from "../../src/closure/reference_graph.ts";
import { clock } from "../../src/runtime/current.ts";
import { checkProperty } from "../support/property.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { changesOf, type GraphNode, hashOfNode, narBytesOf } from "../support/stored_graph.ts";

const NODES_MAX = 20;
const NO_LIMITS = { pathsMax: Infinity, referencesMax: Infinity, untilMs: Infinity };

const place = fc.nat(NODES_MAX);
// One `kept` a NAR file: two paths that share it cannot disagree.
const graphs = fc.record({
  nodes: fc.array(
    fc.record({
      references: fc.array(place, { maxLength: 5 }),
      nar: fc.option(fc.nat(8), { nil: undefined, freq: 4 }),
    }),
    { minLength: 1, maxLength: NODES_MAX },
  ),
  gone: fc.uniqueArray(fc.nat(8), { maxLength: 3 }),
  // More than the 32 that are followed together; a root may be there twice.
  roots: fc.array(place, { maxLength: 70 }),
});

checkProperty(
  "closure sizes: any number of roots together get the sizes of a plain walk of each one",
  fc.asyncProperty(graphs, async ({ nodes, gone, roots }) => {
    const graph = nodes.map(({ references, nar }): GraphNode => ({
      references,
      ...(nar === undefined ? {} : { nar, kept: !gone.includes(nar) }),
    }));
    await using metadata = new MemoryMetadataStore();
    await metadata.apply(changesOf(graph));

    const slice = clock.slice();
    const reading = { slice, limits: NO_LIMITS };
    const read = await readReferenceGraph(metadata, roots.map(hashOfNode), reading);
    const sizes = await closureSizes(read, slice);

    const plain = roots.map((root) => plainSize(graph, root));
    assert.deepEqual(
      sizes,
      plain.map(({ nars, ...size }, index) => {
        const others = plain.filter((_, at) => at !== index).map((one) => one.nars);
        const own = [...nars].filter((nar) => !others.some((ones) => ones.has(nar)));
        return { ...size, ownBytes: own.reduce((sum, nar) => sum + narBytesOf(nar), 0) };
      }),
    );
  }),
);

/** Cycles, references to themselves and paths nobody stored come as they are drawn. */
function plainSize(graph: readonly GraphNode[], root: number) {
  const seen = new Set([root]);
  const nars = new Set<number>();
  let stored = 0;
  for (const node of seen) {
    const { nar, kept, references } = graph[node] ?? { references: [] };
    if (nar === undefined) continue;
    for (const reference of references) seen.add(reference);
    if (!kept) continue;
    stored++;
    nars.add(nar);
  }
  const bytes = [...nars].reduce((sum, nar) => sum + narBytesOf(nar), 0);
  return { stored, missing: seen.size - stored, bytes, nars };
}
