import { hideCredentials } from "./kinds/upstream_url.ts";
import type { Settings } from "./options.ts";

/** A promise between options, checked once each of them is known to be right in itself. */
export interface Rule<S> {
  /** The options that it is about; a problem names the first. */
  readonly about: readonly [keyof S & string, ...(keyof S & string)[]];
  /** `got …, expected …` when the promise is broken. */
  problem(settings: S): string | undefined;
}

/** Every promise between options of larder. */
export const RULES: readonly Rule<Settings>[] = [
  {
    about: ["server.tls-cert", "server.tls-key"],
    problem(settings) {
      const hasKey = settings["server.tls-key"] !== undefined;
      if (hasKey === (settings["server.tls-cert"] !== undefined)) return undefined;
      const [given, missing] = hasKey ? ["key", "certificate"] : ["certificate", "key"];
      return `got a ${given} without a ${missing}, expected both or none`;
    },
  },
  {
    about: ["server.tls-cert", "server.addr"],
    problem(settings) {
      const isUnix = settings["server.addr"].kind === "unix";
      if (!isUnix || settings["server.tls-cert"] === undefined) return undefined;
      return "got a certificate for a Unix socket, expected one for HOST:PORT only";
    },
  },
  {
    about: ["cache.upstream-url"],
    problem(settings) {
      return firstTwice(settings["cache.upstream-url"].map(({ url }) => hideCredentials(url)));
    },
  },
  {
    about: ["cache.upstream-public-key"],
    problem(settings) {
      return firstTwice(settings["cache.upstream-public-key"].map(({ text }) => text));
    },
  },
  {
    about: [
      "cache.upstream-public-key",
      "cache.require-upstream-signature",
      "cache.upstream-url",
    ],
    problem(settings) {
      const isNeeded = settings["cache.require-upstream-signature"] &&
        settings["cache.upstream-url"].length > 0;
      if (!isNeeded || settings["cache.upstream-public-key"].length > 0) return undefined;
      return "got no key, expected one while cache.require-upstream-signature is true";
    },
  },
  {
    about: ["cache.max-size"],
    problem(settings) {
      if (settings["cache.max-size"] !== 0) return undefined;
      return "got 0, expected a size above it; leave it out for no limit";
    },
  },
];

function firstTwice(items: readonly string[]): string | undefined {
  const twice = items.find((item, at) => items.indexOf(item) < at);
  return twice && `got ${JSON.stringify(twice)} twice, expected it once`;
}
