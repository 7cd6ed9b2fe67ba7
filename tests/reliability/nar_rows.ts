import { gzipSync } from "node:zlib";
import {
  type Alteration,
  cutAt,
  inChunks,
  inOrder,
  inTurn,
  OBJECT,
  rewritten,
  stallAt,
  status,
} from "../simulation/scene.ts";
import type { Row } from "./row.ts";

const area = "upstream";
const HALF = 500_000;
const cut = { area, saw: "cut", kept: "narinfo" } as const;
const refused = { area, saw: "refused", kept: "narinfo" } as const;
const whole = { area, saw: "whole", kept: "nar" } as const;
const honest: Alteration = (answer) => answer;

/** Upstreams whose narinfos are good, and whose NARs are not. */
export const NAR_ROWS: readonly Row[] = [
  {
    fault: "a NAR that is 500",
    area,
    saw: "absent",
    kept: "narinfo",
    breaks: (scene) => scene.behave({ nar: status(500) }),
  },
  {
    fault: "a NAR with a wrong bit",
    ...refused,
    breaks: (scene) => scene.behave({ nar: withWrongBit }),
  },
  {
    fault: "a NAR without an end",
    ...refused,
    breaks: (scene) =>
      scene.behave({
        nar: inOrder(inChunks, (answer) => ({ ...answer, body: ReadableStream.from(endless()) })),
      }),
  },
  {
    fault: "a small file that holds 64 MiB more than was signed",
    ...refused,
    breaks: (scene) => {
      const body = gzipSync(new Uint8Array(64 << 20));
      scene.behave({
        narinfo: rewritten((lines) =>
          lines.replace(/^Compression: .*$/m, "Compression: gzip")
            .replace(/^FileHash: .*\nFileSize: .*\n/m, "")
        ),
        nar: (answer) => ({ ...answer, body, headers: { "content-length": `${body.length}` } }),
      });
    },
  },
  {
    fault: "a NAR that is cut halfway; the same upstream has the rest",
    ...whole,
    breaks: (scene) => scene.behave({ nar: inTurn(cutAt(HALF), honest) }),
  },
  {
    fault: "cut halfway; another upstream has the same file",
    ...whole,
    scene: { upstreams: [{ nar: cutAt(HALF) }, {}] },
  },
  {
    fault: "cut halfway; only an upstream without ranges has it, and sends it from its start",
    ...whole,
    scene: { upstreams: [{ nar: cutAt(HALF) }, { nar: withoutRanges }] },
  },
  {
    fault: "silence halfway; the same upstream has the rest",
    ...whole,
    breaks: (scene) => scene.behave({ nar: inTurn(stallAt(HALF), honest) }),
  },
  {
    fault: "cut halfway, and no upstream has the rest",
    ...cut,
    breaks: (scene) => scene.behave({ nar: cutAt(HALF) }),
  },
  {
    fault: "cut halfway in chunks, and no upstream has the rest",
    ...cut,
    breaks: (scene) => scene.behave({ nar: inOrder(inChunks, cutAt(HALF)) }),
  },
];

function withWrongBit(answer: Parameters<Alteration>[0]): ReturnType<Alteration> {
  const body = OBJECT.nar.slice();
  body[HALF] = (body[HALF] ?? 0) ^ 1;
  return { ...answer, body };
}

/** The whole file, whatever range is requested. */
function withoutRanges(): ReturnType<Alteration> {
  const { nar } = OBJECT;
  return { status: 200, headers: { "content-length": String(nar.length) }, body: nar };
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (const piece = new Uint8Array(64 * 1024);;) yield piece;
}
