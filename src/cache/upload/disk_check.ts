import { freeBytesOf } from "../../base/free_bytes.ts";
import type { Space } from "../../space/space.ts";
import { UploadRefused } from "./upload_outcome.ts";

export interface DiskCheck {
  /** A folder on the disk. */
  readonly folder: string;
  readonly space: Pick<Space, "budget" | "diskFull">;
  /** The announced size. */
  readonly length: number | undefined;
}

/**
 * Throws UploadRefused where the disk has too few free bytes. Nix sends the whole file again only
 * after a refusal before its bytes.
 */
export async function checkFreeDisk({ folder, space, length = 0 }: DiskCheck): Promise<void> {
  const { limitBytes, usedBytes } = space.budget;
  // A file above the limit never fits, and gets another refusal.
  if (length > limitBytes) return;
  // Where the free bytes are unknown, the write itself fails.
  const freeBytes = await freeBytesOf(folder).catch(() => Infinity);
  if (length <= freeBytes) return;
  // Eviction makes room for the next try, where there is enough to evict.
  if (length <= freeBytes + usedBytes) space.diskFull();
  const line = `expected ${length} free bytes on the disk, and ${freeBytes} are free`;
  throw new UploadRefused("no-room", line);
}
