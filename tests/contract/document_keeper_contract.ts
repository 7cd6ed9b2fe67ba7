import assert from "node:assert/strict";
import type {
  DocumentChange,
  DocumentFacts,
  MetadataStore,
} from "../../src/metadata/metadata_store.ts";
import type { DocumentPath } from "../../src/nix/document_name.ts";
import { narOf } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c] = ["log/a.drv", "log/b.drv", "log/c.drv"] as DocumentPath[] as [
  DocumentPath,
  DocumentPath,
  DocumentPath,
];

function put(path: DocumentPath, size: number, more: Partial<Put> = {}): DocumentChange {
  const document: DocumentFacts = {
    path,
    upstream: "https://cache.example.org",
    type: "text/plain",
    tag: `tag of ${size}`,
    bodyBytes: size,
    mayChange: false,
    ...more.document,
  };
  const pieces = more.pieces ?? [new Uint8Array(size).fill(7)];
  const { totalBytesMax = Infinity, atMs = 1_000 } = more;
  return { kind: "put-document", document, pieces, totalBytesMax, atMs };
}

interface Put {
  readonly document: Partial<DocumentFacts>;
  readonly pieces: readonly Uint8Array[];
  readonly totalBytesMax: number;
  readonly atMs: number;
}

export const documentKeeperClauses: Clauses<MetadataStore> = {
  "a document that was never put is undefined": async (store) => {
    assert.equal(await store.findDocument(a), undefined);
    assert.equal(await store.documentPiece(1, 0), undefined);
    assert.equal(await store.documentBytes(), 0);
    assert.deepEqual(await store.debuginfoSourcesOf(narOf("x").name), []);
  },

  "put-document is found again as it was, piece by piece": async (store) => {
    const pieces = [Uint8Array.of(1, 2), Uint8Array.of(3)];
    const narName = narOf("x").name;
    const document = { encoding: "zstd", mayChange: true, narName, bodyBytes: 3 };
    await store.apply([put(a, 3, { document, pieces })]);
    const row = await store.findDocument(a);
    assert.ok(row);
    const { id, ...facts } = row;
    const upstream = "https://cache.example.org";
    const given = { path: a, upstream, type: "text/plain", tag: "tag of 3", ...document };
    assert.deepEqual(facts, { ...given, checkedAtMs: 1_000 });
    assert.deepEqual(await store.documentPiece(id, 0), pieces[0]);
    assert.deepEqual(await store.documentPiece(id, 1), pieces[1]);
    assert.equal(await store.documentPiece(id, 2), undefined);
    assert.deepEqual(await store.debuginfoSourcesOf(narName), [{
      upstream,
      location: `nar/${narName}`,
    }]);
  },

  "a NAR is where any debuginfo document says it is, once for each upstream": async (store) => {
    const narName = narOf("x").name;
    const from = (upstream: string) => ({ document: { upstream, narName } });
    await store.apply([
      put(a, 1, from("https://one.example")),
      put(b, 1, from("https://two.example")),
    ]);
    await store.apply([put(c, 1, from("https://one.example"))]);
    const upstreams = (await store.debuginfoSourcesOf(narName)).map(({ upstream }) => upstream);
    assert.deepEqual(upstreams.toSorted(), ["https://one.example", "https://two.example"]);
  },

  "a document that replaces another has an id of its own, and counts once": async (store) => {
    await store.apply([put(a, 5)]);
    const before = await store.findDocument(a);
    await store.apply([put(a, 7)]);
    const after = await store.findDocument(a);
    assert.notEqual(before?.id, after?.id);
    assert.equal(await store.documentPiece(before?.id ?? 0, 0), undefined);
    assert.equal(await store.documentBytes(), 7);
  },

  "the document that was used longest ago goes for a new one": async (store) => {
    await store.apply([put(a, 40, { atMs: 1 }), put(b, 40, { atMs: 2 })]);
    await store.apply([{ kind: "touch-document", path: a, atMs: 3 }]);
    await store.apply([put(c, 40, { totalBytesMax: 100, atMs: 4 })]);
    assert.equal(await store.findDocument(b), undefined);
    assert.ok(await store.findDocument(a));
    assert.ok(await store.findDocument(c));
    assert.equal(await store.documentBytes(), 80);
  },

  "a document larger than all may be is not kept, and nothing goes for it": async (store) => {
    await store.apply([put(a, 40)]);
    await store.apply([put(b, 101, { totalBytesMax: 100 })]);
    assert.equal(await store.findDocument(b), undefined);
    assert.equal(await store.documentBytes(), 40);
  },

  "check-document tells when it was last the same, and never goes back": async (store) => {
    await store.apply([put(a, 1, { atMs: 5 })]);
    await store.apply([{ kind: "check-document", path: a, atMs: 9 }]);
    await store.apply([{ kind: "check-document", path: a, atMs: 7 }]);
    assert.equal((await store.findDocument(a))?.checkedAtMs, 9);
  },

  "remove-document removes it, and its bytes count no more": async (store) => {
    await store.apply([put(a, 40), put(b, 2)]);
    const id = (await store.findDocument(a))?.id ?? 0;
    await store.apply([{ kind: "remove-document", path: a }]);
    assert.equal(await store.findDocument(a), undefined);
    assert.equal(await store.documentPiece(id, 0), undefined);
    assert.equal(await store.documentBytes(), 2);
  },

  "a change of a document that is not there changes nothing": async (store) => {
    await store.apply([
      { kind: "remove-document", path: a },
      { kind: "touch-document", path: a, atMs: 1 },
      { kind: "check-document", path: a, atMs: 1 },
    ]);
    assert.equal(await store.findDocument(a), undefined);
  },
};
