import assert from "node:assert/strict";
import type { NarAnswer } from "../../../src/cache/nar/nar_answer.ts";
import type { OpenKeptFile } from "../../../src/cache/kept/kept_nars.ts";
import type { Download } from "../../../src/cache/download/run_download.ts";
import { MemberNarServer } from "../../../src/cache/serve_member.ts";
import type { NarRecord } from "../../../src/metadata/metadata_store.ts";
import type { Seal } from "../../../src/nix/stored_name.ts";
import { ActiveReads } from "../../../src/space/active_reads.ts";
import { fileOf, narOf } from "../../support/metadata_rows.ts";

const NAR = narOf("a");
const FILE = fileOf(NAR.name);
const FORMS = { answer: (file: NarAnswer) => file, broke: () => Promise.resolve() };
const CLIENT = { signal: new AbortController().signal };

/** A member whose download ends between the looks at the row and at the downloads. */
function memberWith(before: NarRecord | undefined, after: NarRecord | undefined) {
  let row = before;
  return new MemberNarServer({
    metadata: { findNar: (_, { fresh } = {}) => Promise.resolve(fresh ? row : before) },
    kept: { open: ({ kept }) => Promise.resolve(kept && { kept, stored: STORED }) },
    downloads: {
      find() {
        row = after;
        return undefined;
      },
    },
    reads: new ActiveReads(),
    forms: FORMS,
  });
}

const STORED: OpenKeptFile["stored"] = {
  fileSize: FILE.fileSize,
  seal: "1" as Seal,
  bytes: () => assert.fail("nobody reads"),
  read: () => assert.fail("nobody reads"),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

Deno.test("member: a NAR whose download ends while it is looked for is found", async () => {
  const member = memberWith(NAR, { ...NAR, kept: FILE });

  await using answer = await member.open(NAR.name, "request", CLIENT);

  assert.equal(answer?.cacheResult, "HIT");
  assert.equal(answer.fileSize, FILE.fileSize);
});

Deno.test("member: a NAR that is neither stored nor in flight is absent", async () => {
  for (const row of [NAR, undefined]) {
    assert.equal(await memberWith(row, row).open(NAR.name, "request", CLIENT), undefined);
  }
});

Deno.test("member: a GET of a NAR in flight wants it, a HEAD does not", async () => {
  let wants = 0;
  const download = {
    state: { state: "running" },
    fileSize: FILE.fileSize,
    want: () => void wants++,
    use: () => ({ [Symbol.dispose]() {} }),
  } as unknown as Download;
  const member = new MemberNarServer({
    metadata: { findNar: () => Promise.resolve(NAR) },
    kept: { open: () => Promise.resolve(undefined) },
    downloads: { find: () => download },
    reads: new ActiveReads(),
    forms: FORMS,
  });

  await using looked = await member.stat(NAR.name, "request", CLIENT);
  assert.deepEqual([looked?.cacheResult, looked?.fileSize, wants], ["JOINED", FILE.fileSize, 0]);
  await using _opened = await member.open(NAR.name, "request", CLIENT);
  assert.equal(wants, 1);
});
