import { durationOrOff, retention } from "../kinds/duration.ts";
import { boolean, integer, path, plainName } from "../kinds/plain.ts";
import { schedule, timeZone } from "../kinds/schedule.ts";
import { size } from "../kinds/size.ts";
import type { OptionTable } from "../kinds/option.ts";

const PRIORITY_MAX = 2 ** 31 - 1;

/** What larder says of itself, signs and remembers. */
export const CACHE_OPTIONS = {
  "cache.hostname": {
    kind: plainName,
    computed: ({ hostname }) => hostname(),
    shown: "the machine's host name",
    help: "Name of this cache, and of the key that it signs with",
  },
  "cache.priority": {
    kind: integer(1, PRIORITY_MAX),
    default: 30,
    help: "Place among a client's substituters; the lower is asked first",
    details: "cache.nixos.org announces 40.",
  },
  "cache.sign-narinfo": {
    kind: boolean,
    default: true,
    help: "Add a signature of our own to each narinfo",
  },
  "cache.secret-key-path": {
    kind: path,
    shown: "a key made at the first start",
    help: "File with the secret key to sign with",
    details: "A missing file is made at the first start; later, in a used storage, it is an error.",
  },
  "cache.negative-ttl": {
    kind: durationOrOff,
    default: 60_000,
    help: "How long to remember that no upstream has a path; 0s never does",
  },
  "cache.max-size": {
    kind: size,
    shown: "unlimited",
    example: "50G",
    help: "Most bytes of NAR files to keep, downloads in progress included",
    details: "What was used longest ago goes first; what a pin protects never goes.",
  },
  "cache.lru-schedule": {
    kind: schedule,
    shown: "only when space is needed",
    example: "0 3 * * *",
    help: "When to evict beforehand, as a cron schedule",
    also: [{ key: "cache.lru.schedule" }],
  },
  "cache.lru-schedule-timezone": {
    kind: timeZone,
    default: "UTC",
    help: "Time zone of cache.lru-schedule",
    also: [{ variable: "CACHE_LRU_SCHEDULE_TZ", key: "cache.lru.timezone" }],
  },
  "cache.metadata-retention": {
    kind: retention,
    default: 180 * 24 * 3_600_000,
    help: "How long to keep metadata that nobody asks for; 0s keeps it for ever",
    details: "Kept NAR files and pinned paths keep theirs. Nix remembers a narinfo for 30 days.",
  },
  "cache.allow-delete-verb": {
    kind: boolean,
    default: false,
    help: "Let clients remove narinfos and NARs with DELETE",
  },
  "cache.temp-path": {
    kind: path,
    shown: "inside the storage",
    help: "Directory for downloads in progress",
    details: "Should be on the file system of the storage: a finished file is moved there.",
  },
} as const satisfies OptionTable;
