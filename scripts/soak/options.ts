import { parseArgs } from "node:util";

export interface SoakOptions {
  readonly minutes: number;
  readonly clients: number;
  /** Determines every random choice, but not their interleaving. */
  readonly seed: number;
  /** Kill and restart the process from time to time. */
  readonly kills: boolean;
}

export const USAGE = `A larder among failing upstreams and unruly clients; every answer is checked.

  --minutes N  how long, parts of one too (default 10)
  --clients N  how many at once (default 200)
  --seed N     what happens (default: another one each time, printed)
  --kills      kill -9 larder every half a minute or so, and start it again

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
      kills: { type: "boolean", default: false },
    },
  });
  return {
    minutes: positive("minutes", values.minutes),
    clients: Math.ceil(positive("clients", values.clients)),
    seed: positive("seed", values.seed),
    kills: values.kills,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} is "${text}": expected a number above 0`);
  return value;
}
