import { parseArgs } from "node:util";

export interface SoakOptions {
  readonly minutes: number;
  readonly clients: number;
  /** Determines every random choice, but not their interleaving. */
  readonly seed: number;
  /** Larders on one storage. */
  readonly members: number;
  /** Kill, restart and pause larders, and harm what several of them share. */
  readonly harm: boolean;
}

export const USAGE = `Larders among failing upstreams and unruly clients; every answer is checked.

  --minutes N  how long, parts of one too (default 10)
  --clients N  how many at once (default 200)
  --seed N     what happens (default: another one each time, printed)
  --members N  one larder (default), or two or three on one storage
  --harm       from time to time, kill, restart or pause a larder

Two and more need redis-server. They use PostgreSQL where that is installed, else SQLite. NAR files
are in S3 where scripts/versitygw has built a server, else in a folder. --harm also separates those
larders, stops and freezes Redis and PostgreSQL, and lets S3 refuse, wait and cut.

Exit status 1: a wrong byte, a 5xx response to a narinfo or NAR request, or no recovery in the end.
Status 1, too: growing memory, a disk beyond its limit, or a file left open.
`;

const SEEDS = 2 ** 31;

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: "string", default: "10" },
      clients: { type: "string", default: "200" },
      seed: { type: "string", default: String(Math.floor(Math.random() * SEEDS)) },
      members: { type: "string", default: "1" },
      harm: { type: "boolean", default: false },
    },
  });
  const members = Number(values.members);
  if (![1, 2, 3].includes(members)) {
    throw new Error(`--members is "${values.members}": expected 1, 2 or 3`);
  }
  return {
    members,
    minutes: positive("minutes", values.minutes),
    clients: Math.ceil(positive("clients", values.clients)),
    seed: positive("seed", values.seed),
    harm: values.harm,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} is "${text}": expected a number above 0`);
  return value;
}
