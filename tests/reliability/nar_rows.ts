import type { Bytes } from "../../src/base/bytes.ts";
import {
  chunked,
  corruptByteAt,
  cutAfter,
  fileFault,
  firstTimes,
  inOrder,
  stallAfter,
  status,
} from "../support/faults.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import type { Row } from "./row.ts";

const area = "upstream";
const HALF = 500_000;
const cut = { area, saw: "cut", kept: "narinfo" } as const;
const refused = { area, saw: "refused", kept: "narinfo" } as const;
const whole = { area, saw: "whole", kept: "nar" } as const;

/** Upstreams whose narinfos are good, and whose NARs are not. */
export const NAR_ROWS: readonly Row[] = [
  {
    fault: "a NAR that is 500",
    area,
    saw: "absent",
    kept: "narinfo",
    breaks: ({ upstream }) => upstream.breakNar(status(500)),
  },
  {
    fault: "a NAR with a wrong bit",
    ...refused,
    breaks: ({ upstream }) => upstream.breakNar(corruptByteAt(HALF)),
  },
  {
    fault: "a NAR without an end",
    ...refused,
    breaks: ({ upstream }) =>
      upstream.breakNar((answer) => ({ ...answer, framing: "chunked", body: endless() })),
  },
  {
    fault: "a small file that holds 64 MiB more than was signed",
    ...refused,
    breaks: async ({ upstream }) => {
      const bomb = await gzippedZeros(64 << 20);
      upstream.breakNarinfo(
        rewritten((text) =>
          text.replace(/^Compression: .*$/m, "Compression: gzip")
            .replace(/^FileHash: .*\nFileSize: .*\n/m, "")
        ),
      );
      upstream.breakNar((answer) => ({ ...answer, body: bomb, framing: bomb.length }));
    },
  },
  {
    fault: "a NAR that is cut halfway; the same upstream has the rest",
    ...whole,
    breaks: ({ upstream }) => upstream.breakNar(firstTimes(1, cutAfter(HALF))),
  },
  {
    fault: "cut halfway; another upstream has the same file",
    ...whole,
    other: {},
    breaks: ({ upstream }) => upstream.breakNar(fileFault(cutAfter, HALF)),
  },
  {
    fault: "cut halfway; only an upstream without ranges has it, and sends it from its start",
    ...whole,
    other: { hasRanges: false },
    breaks: ({ upstream }) => upstream.breakNar(fileFault(cutAfter, HALF)),
  },
  {
    fault: "silence halfway; the same upstream has the rest",
    ...whole,
    breaks: ({ upstream }) => upstream.breakNar(firstTimes(1, stallAfter(HALF))),
  },
  {
    fault: "cut halfway, and no upstream has the rest",
    ...cut,
    breaks: ({ upstream }) => upstream.breakNar(fileFault(cutAfter, HALF)),
  },
  {
    fault: "cut halfway in chunks, and no upstream has the rest",
    ...cut,
    upstream: { dialect: "attic" },
    breaks: ({ upstream }) => upstream.breakNar(inOrder(chunked(), fileFault(cutAfter, HALF))),
  },
];

async function* endless(): AsyncGenerator<Uint8Array> {
  for (const piece = new Uint8Array(64 * 1024);;) yield piece;
}

async function gzippedZeros(byteLength: number): Promise<Bytes> {
  const zeros = new Blob([new Uint8Array(byteLength)]).stream();
  return await new Response(zeros.pipeThrough(new CompressionStream("gzip"))).bytes();
}
