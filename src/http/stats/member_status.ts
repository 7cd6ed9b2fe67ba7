import { visible } from "../../base/visible.ts";
import { STATUS_BYTES_MAX } from "../../metadata/member_board.ts";

/** A member's report to the others; all of it is for displays. */
export interface MemberStatus {
  readonly host: string;
  readonly version: string;
  /** `--cache-advertise-url`. */
  readonly url: string | null;
  readonly started_at: string | null;
  readonly is_draining: boolean;
  readonly requests_per_second: number | null;
  readonly hit_ratio: number | null;
  readonly upstreams: { readonly up: number; readonly down: number };
  /** Kinds of problems that are present. */
  readonly problems: number;
  readonly downloads: {
    readonly count: number;
    readonly under_way: readonly MemberDownload[];
  };
}

export interface MemberDownload {
  readonly nar: string;
  readonly name: string | null;
  readonly received_bytes: number;
  readonly file_bytes: number | null;
}

/** larder counts further downloads, and does not list them. */
export const MEMBER_DOWNLOADS_MAX = 20;

/** Characters of a text: host names and names of store paths are shorter. */
const TEXT_MAX = 256;

const ISO_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

/** Drops the last downloads of a status that would be too long. */
export function formatStatus(status: MemberStatus): string {
  const { under_way } = status.downloads;
  for (let listed = under_way.length;; listed--) {
    const downloads = { ...status.downloads, under_way: under_way.slice(0, listed) };
    const text = JSON.stringify({ ...status, downloads });
    if (listed === 0 || new TextEncoder().encode(text).length <= STATUS_BYTES_MAX) return text;
  }
}

/** The status that another process wrote, each field checked; `undefined` if it is none. */
export function parseStatus(text: string): MemberStatus | undefined {
  if (text.length > STATUS_BYTES_MAX) return undefined;
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(given)) return undefined;
  const upstreams = recordIn(given["upstreams"]);
  const downloads = recordIn(given["downloads"]);
  const listed = Array.isArray(downloads["under_way"]) ? downloads["under_way"] : [];
  const startedAt = textIn(given["started_at"]);
  return {
    host: textIn(given["host"]) ?? "",
    version: textIn(given["version"]) ?? "",
    url: textIn(given["url"]),
    started_at: startedAt !== null && isTime(startedAt) ? startedAt : null,
    is_draining: given["is_draining"] === true,
    requests_per_second: numberIn(given["requests_per_second"]),
    hit_ratio: ratioIn(given["hit_ratio"]),
    upstreams: { up: countIn(upstreams["up"]), down: countIn(upstreams["down"]) },
    problems: countIn(given["problems"]),
    downloads: {
      count: countIn(downloads["count"]),
      under_way: listed.slice(0, MEMBER_DOWNLOADS_MAX).filter(isRecord).map(downloadIn),
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function downloadIn(given: Fields): MemberDownload {
  return {
    nar: textIn(given["nar"]) ?? "",
    name: textIn(given["name"]),
    received_bytes: countIn(given["received_bytes"]),
    file_bytes: numberIn(given["file_bytes"]),
  };
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordIn(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

function textIn(value: unknown): string | null {
  return typeof value === "string" ? shortText(value) : null;
}

/** An escape takes several characters. */
function shortText(text: string): string {
  return visible(text.slice(0, TEXT_MAX)).slice(0, TEXT_MAX);
}

function isTime(text: string): boolean {
  return ISO_REGEXP.test(text) && !Number.isNaN(Date.parse(text));
}

function numberIn(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null;
}

function ratioIn(value: unknown): number | null {
  const ratio = numberIn(value);
  return ratio !== null && ratio <= 1 ? ratio : null;
}

function countIn(value: unknown): number {
  return Math.floor(numberIn(value) ?? 0);
}
