import { ANALYTICS } from "./analytics.ts";
import type { Command } from "./command.ts";
import { configCommand } from "./config.ts";
import { FSCK } from "./fsck.ts";
import { GC } from "./gc.ts";
import { PIN, UNPIN } from "./pin.ts";
import { PINS } from "./pins.ts";
import { serveCommand } from "./serve.ts";
import { WARM } from "./warm.ts";

/** Every command, in the order in which help lists them. */
export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    summary: "Run the binary cache until it is told to stop",
    examples: [
      ["larder serve", "Listen on port 8501 and cache what cache.nixos.org has"],
      [
        "larder serve --server-addr localhost:8080 --cache-storage-local /var/lib/larder",
        "The same for this machine only, with the files in /var/lib/larder",
      ],
    ],
    flags: "server",
    run: serveCommand,
  },
  {
    name: "config",
    summary: "Print the effective settings and where each came from",
    examples: [
      ["larder config", "What `larder serve` would use here, secrets hidden"],
      ["larder config --log-level debug > larder.toml", "Keep it as a configuration file"],
    ],
    flags: "server",
    run: configCommand,
  },
  WARM,
  PIN,
  UNPIN,
  PINS,
  GC,
  FSCK,
  ANALYTICS,
];
