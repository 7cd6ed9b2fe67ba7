import { bucketName } from "../src/config/kinds/bucket_name.ts";
import { databaseUrl } from "../src/config/kinds/database_url.ts";
import { duration, durationOrOff, retention } from "../src/config/kinds/duration.ts";
import { fileMode } from "../src/config/kinds/file_mode.ts";
import { hostName } from "../src/config/kinds/host_name.ts";
import { httpUrl } from "../src/config/kinds/http_url.ts";
import { listenAddress } from "../src/config/kinds/listen_address.ts";
import { expectedInstead, type Kind } from "../src/config/kinds/option.ts";
import { path, plainName } from "../src/config/kinds/plain.ts";
import { publicKey } from "../src/config/kinds/public_key.ts";
import { size, sizeLimit } from "../src/config/kinds/size.ts";
import { upstreamUrl } from "../src/config/kinds/upstream_url.ts";

const TIME = String.raw`([0-9]+(\.[0-9]+)?(h|m|s|ms))+|0`;
const SIZE = String.raw`[0-9]+(\.[0-9]+)?([KMGTPkmgtp]([iI]?[bB])?|[bB])?`;
const URL = String.raw`[hH][tT][tT][pP][sS]?://[^[:space:]#]+`;

/**
 * Texts of a kind as POSIX extended regular expressions, which Nix knows. They catch mistakes
 * before a machine switches; larder's own parser has the last word.
 */
const PATTERNS: ReadonlyMap<Kind<unknown>, string> = new Map<Kind<unknown>, string>([
  [bucketName, "[A-Za-z0-9][A-Za-z0-9._-]{2,254}"],
  [databaseUrl, "[a-z]+:.+"],
  [duration, TIME],
  [durationOrOff, TIME],
  [fileMode, "0?[0-7]{3}"],
  [hostName, "[A-Za-z0-9][A-Za-z0-9._-]*"],
  [httpUrl, URL],
  [listenAddress, String.raw`unix:/.+|(\[[0-9A-Fa-f:.]+]|[A-Za-z0-9._-]*):[0-9]{1,5}`],
  // A service has no working directory of its own.
  [path, "/.*"],
  [plainName, "[A-Za-z0-9._-]+"],
  [publicKey, "[^:]+:[A-Za-z0-9+/]{43}="],
  [retention, String.raw`([0-9]+(\.[0-9]+)?(d|h|m|s|ms))+|0`],
  [size, SIZE],
  [sizeLimit, `auto|unlimited|${SIZE}`],
  [upstreamUrl, URL],
]);

/** The expectation that larder's own message names for a path. */
const ABSOLUTE_PATH = "an absolute path";

/** The type of a kind in the language of NixOS options. */
export function nixType(kind: Kind<unknown>): string {
  if (kind.item !== undefined) return `types.listOf ${nested(nixType(kind.item))}`;
  if (kind.bare === "boolean") return "types.bool";
  if (kind.values !== undefined) return `types.enum [ ${kind.values.map(nixText).join(" ")} ]`;
  if (kind.range !== undefined) return `types.ints.between ${kind.range.join(" ")}`;
  const pattern = PATTERNS.get(kind);
  if (pattern === undefined) return "types.nonEmptyStr";
  const expected = kind === path ? ABSOLUTE_PATH : expectedInstead(kind, "\0");
  const text = `text ${nixText(expected ?? kind.placeholder)} ${nixText(pattern)}`;
  return kind.bare === "number" ? `types.either types.ints.unsigned (${text})` : text;
}

/** A string literal. */
export function nixText(text: string): string {
  return `"${text.replaceAll(/["\\]|\$(?=\{)/g, "\\$&").replaceAll("\n", "\\n")}"`;
}

function nested(type: string): string {
  return type.includes(" ") ? `(${type})` : type;
}
