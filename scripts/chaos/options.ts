import { parseArgs } from "node:util";

export interface ChaosOptions {
  readonly minutes: number;
  readonly clients: number;
  /** Determines every random choice, but not their interleaving. */
  readonly seed: number;
  /** Size limit of the storage. */
  readonly limitMegabytes: number;
}

export const USAGE =
  `Three larders on one storage among failing neighbours; every answer is checked.

  --minutes N  how long, parts of one too (default 10)
  --clients N  how many at once (default 200)
  --limit N    size limit of the storage in MB: beyond it, larders evict (default 500)
  --seed N     what happens (default: another one each time, printed)

It needs redis-server. It uses PostgreSQL where that is installed, else SQLite. NAR files are in S3
where scripts/versitygw has built a server, else in a folder. Exit status 1: a wrong byte, a 5xx
response to a narinfo or NAR request, or damage of the storage in the end. Status 1, too, if an
upstream had more than 1.05 requests for each fetch of a path. These alone are exempt:

  * A fetch that begins while Redis, the database or S3 fails: larders cannot know of each other.
  * A request while the database or S3 fails: larders cannot read what they have kept.
  * The same for 10 s afterwards, until each larder has found them again.

A request 10 s after the last one for its path is another fetch, unless the database has the path:
eviction has taken it. Figures tell how many these are.
Larders that are killed, restarted, paused or cut off from each other are no excuse.
`;

const SEEDS = 2 ** 31;

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: "string", default: "10" },
      clients: { type: "string", default: "200" },
      limit: { type: "string", default: "500" },
      seed: { type: "string", default: String(Math.floor(Math.random() * SEEDS)) },
    },
  });
  const positive = (name: keyof typeof values) => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} is "${values[name]}": expected a number above 0`);
    return value;
  };
  return {
    minutes: positive("minutes"),
    clients: Math.ceil(positive("clients")),
    seed: positive("seed"),
    limitMegabytes: positive("limit"),
  };
}
