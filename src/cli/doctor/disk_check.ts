import { size, type SizeLimitOrder } from "../../config/kinds/size.ts";
import { formatBytes } from "../../base/format_units.ts";
import type { DiskRoom } from "../../runtime/files.ts";
import { diskLimitBytes, diskReserveBytes, limitOrigin } from "../../space/size_limit.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** Below this share of bytes or inodes a disk is nearly full. */
const SCARCE_SHARE = 0.05;

/** Below these larder stores nothing any more. */
const FULL_BYTES = 64 << 20;
const FULL_FILES = 1_000;

/** The share of the disk that larder may use without a warning. */
const LIMIT_SHARE = 0.9;

/** The advised limit is a whole number of these. */
const LIMIT_UNIT_BYTES = 1 << 30;

/** `room` of the storage's file system; `undefined`: unknown. */
export function checkDisk(folder: string, room: DiskRoom | undefined): readonly Finding[] {
  const disk = findingsOn("disk");
  const inodes = findingsOn("inodes");
  if (room === undefined) {
    const advice = "let the user of larder run this, with an existing storage";
    return [disk.notChecked(`no figures of ${folder}`, advice)];
  }
  const { freeBytes, totalBytes, files } = room;
  const fact = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free at ${folder}`;
  const advice = "make room, or move the storage with --cache-storage-local";
  const findings: Finding[] = [];
  if (freeBytes < FULL_BYTES) findings.push(disk.failed(fact, advice));
  else if (freeBytes < totalBytes * SCARCE_SHARE) findings.push(disk.warning(fact, advice));
  else findings.push(disk.ok(fact));
  if (files === undefined) return [...findings, inodes.ok("the file system has no fixed number")];
  const count = `${files.free.toLocaleString("en-US")} of ${
    files.total.toLocaleString("en-US")
  } free`;
  const more = "remove small files, or make a file system with more inodes";
  if (files.free < FULL_FILES) findings.push(inodes.failed(count, more));
  else if (files.free < files.total * SCARCE_SHARE) findings.push(inodes.warning(count, more));
  else findings.push(inodes.ok(count));
  return findings;
}

export interface LimitFacts {
  readonly order: SizeLimitOrder;
  /** Bytes of all NAR files; `undefined`: unknown. */
  readonly usedBytes: number | undefined;
  /** The part of them that pins protect; `undefined`: unknown. */
  readonly pinnedBytes: number | undefined;
  readonly room: DiskRoom | undefined;
}

/** Compares the size limit with the disk. */
export function checkLimit(facts: LimitFacts): readonly Finding[] {
  const { order, usedBytes, pinnedBytes = 0, room } = facts;
  const { ok, warning, notChecked } = findingsOn("size limit");
  if (room === undefined || usedBytes === undefined) {
    return [notChecked("the disk or its use is unknown", "see the lines on disk and database")];
  }
  const possibleBytes = usedBytes + room.freeBytes;
  const advised = advisedLimit(possibleBytes * LIMIT_SHARE);
  const hasEnd = room.freeBytes < Infinity;
  if (order === "unlimited" && hasEnd) {
    return [warning(
      `unlimited, so larder fills the disk: ${formatBytes(room.freeBytes)} are free`,
      `set --cache-max-size auto, or ${advised}`,
    )];
  }
  if (order === "unlimited" || (order === "auto" && !hasEnd)) {
    const origin = limitOrigin(order === "auto" ? "bucket" : "unlimited");
    return [ok(`none (${origin}); ${formatBytes(usedBytes)} used`)];
  }
  if (order === "auto") return [checkAuto({ usedBytes, pinnedBytes, room })];
  const limitBytes = order;
  const used = `${formatBytes(usedBytes)} of ${formatBytes(limitBytes)} used`;
  if (limitBytes > possibleBytes) {
    return [warning(
      `${used}, and the disk has room for ${formatBytes(possibleBytes)} alone`,
      `set --cache-max-size ${advised}, or make room`,
    )];
  }
  if (pinnedBytes > limitBytes * LIMIT_SHARE) {
    return [warning(
      `pins protect ${formatBytes(pinnedBytes)} of ${formatBytes(limitBytes)}`,
      "unpin unneeded closures (larder pins lists all), or raise --cache-max-size",
    )];
  }
  return [ok(used)];
}

/** The limit that a disk leaves. */
function checkAuto({ usedBytes, pinnedBytes, room }: {
  readonly usedBytes: number;
  readonly pinnedBytes: number;
  readonly room: DiskRoom;
}): Finding {
  const { ok, warning } = findingsOn("size limit");
  const limitBytes = diskLimitBytes(room, usedBytes);
  const origin = limitOrigin("disk", diskReserveBytes(room.totalBytes));
  const used = `${formatBytes(usedBytes)} of ${formatBytes(limitBytes)} used (${origin})`;
  if (usedBytes > limitBytes) {
    return warning(
      `${used}: others fill the disk, and larder evicts for them`,
      "make room, or move the storage with --cache-storage-local",
    );
  }
  if (pinnedBytes > limitBytes * LIMIT_SHARE) {
    return warning(
      `pins protect ${formatBytes(pinnedBytes)} of ${formatBytes(limitBytes)} (${origin})`,
      "unpin unneeded closures (larder pins lists all), or make room on the disk",
    );
  }
  return ok(used);
}

/** A whole number of gibibytes, or the bytes themselves on a small disk. */
function advisedLimit(bytes: number): string {
  const whole = Math.floor(bytes / LIMIT_UNIT_BYTES) * LIMIT_UNIT_BYTES;
  return size.print(whole > 0 ? whole : Math.floor(bytes / (1 << 20)) * (1 << 20));
}
