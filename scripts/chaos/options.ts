import { parseArgs } from "node:util";

export interface ChaosOptions {
  readonly minutes: number;
  readonly clients: number;
  /** Determines every random choice, but not their interleaving. */
  readonly seed: number;
}

export const USAGE =
  `Three larders on one storage among failing neighbours; every answer is checked.

  --minutes N  how long, parts of one too (default 10)
  --clients N  how many at once (default 200)
  --seed N     what happens (default: another one each time, printed)

It needs redis-server. It uses PostgreSQL where that is installed, else SQLite. Exit status 1: a
wrong byte, a 5xx response to a narinfo or NAR request, or damage of the storage in the end. Status
1, too, if an upstream had more than 1.05 requests for each path. Paths that appear while locks or
the database are away do not count: without them larders cannot know of each other.
`;

const SEEDS = 2 ** 31;

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: "string", default: "10" },
      clients: { type: "string", default: "200" },
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
  };
}
