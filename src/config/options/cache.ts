import { durationOrOff, retention } from "../kinds/duration.ts";
import { boolean, choice, integer, path, plainName } from "../kinds/plain.ts";
import { schedule, timeZone } from "../kinds/schedule.ts";
import { size, sizeLimit } from "../kinds/size.ts";
import type { OptionTable } from "../kinds/option.ts";

const PRIORITY_MAX = 2 ** 31 - 1;

/** More are only more memory. */
const VERIFY_THREADS_MAX = 64;

/** Higher levels want windows that clients do not expect. */
const RECOMPRESS_LEVEL_MAX = 19;

/** Options of the cache: its identity, signing, size and memory. */
export const CACHE_OPTIONS = {
  "cache.hostname": {
    kind: plainName,
    computed: ({ hostname }) => hostname(),
    shown: "the machine's host name",
    help: "Name of this cache and of its signing key",
  },
  "cache.priority": {
    kind: integer(1, PRIORITY_MAX),
    default: 30,
    help: "Priority among a client's substituters; lower comes first",
    details: "cache.nixos.org has 40.",
  },
  "cache.sign-narinfo": {
    kind: boolean,
    default: true,
    help: "Sign each narinfo with the key of this cache",
  },
  "cache.secret-key-path": {
    kind: path,
    isSecretFile: true,
    shown: "a key generated at the first start",
    help: "File with the secret signing key",
    details:
      "The first start creates a missing file. In a used storage a missing file is an error.",
  },
  "cache.negative-ttl": {
    kind: durationOrOff,
    default: 60_000,
    help: "How long to remember that no upstream has a path; 0s is off",
  },
  "cache.narinfo-refresh": {
    kind: durationOrOff,
    default: 24 * 3_600_000,
    help: "Age at which served narinfos are checked for signatures; 0s is off",
    details: "In the background, for narinfos whose NAR files are here.",
  },
  "cache.max-size": {
    kind: sizeLimit,
    default: "auto",
    help: "Size limit of all NAR files: auto, unlimited, or such as 50G",
    details: "auto leaves a tenth of the disk free, at most 20 GiB, and has no limit on S3.",
  },
  "cache.lru-schedule": {
    kind: schedule,
    shown: "only when space is needed",
    example: "0 3 * * *",
    help: "Cron schedule of evictions ahead of need",
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
    help: "How long to keep unused metadata; 0s is for ever",
    details:
      "Metadata of kept NAR files and pinned paths stays. Nix remembers a narinfo for 30 days.",
  },
  "cache.allow-delete-verb": {
    kind: boolean,
    default: false,
    help: "Let clients remove narinfos and NARs with DELETE",
  },
  "cache.prefetch": {
    kind: boolean,
    default: true,
    help: "Fetch likely next requests ahead",
    details: "Narinfos of references, and small NARs; in the background, never before a client.",
  },
  "cache.prefetch-nar-max-size": {
    kind: size,
    default: 2 ** 20,
    help: "Largest NAR file to fetch ahead; 0 fetches narinfos only",
  },
  "cache.recompress": {
    kind: choice("auto", "on", "off"),
    default: "auto",
    help: "Keep NAR files in zstd, which clients decode faster than xz",
    details: "In the background. auto: where the runtime can, and there are two cores or more.",
  },
  "cache.recompress-level": {
    kind: integer(1, RECOMPRESS_LEVEL_MAX),
    default: 9,
    help: "Level of zstd for these files; a higher one is smaller and slower",
  },
  "cache.verify-threads": {
    kind: integer(1, VERIFY_THREADS_MAX),
    computed: ({ cores }) => Math.min(4, Math.max(1, cores() - 1)),
    shown: "one less than there are cores, at most 4",
    example: "2",
    help: "Threads that decompress and hash NARs",
    details:
      "Each takes some 25 MB of memory, and up to 129 MiB for each file that it decompresses.",
  },
  "cache.temp-path": {
    kind: path,
    shown: "inside the storage",
    help: "Directory for running downloads",
    details: "Should be on the file system of the storage, as finished files move there.",
  },
} as const satisfies OptionTable;
