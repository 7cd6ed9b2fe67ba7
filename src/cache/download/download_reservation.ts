import type { NarRow } from "../../metadata/metadata_store.ts";
import { FIRST_STEP_BYTES, GrowingReservation } from "../../space/growing_reservation.ts";
import type { Space } from "../../space/space.ts";
import { announcedFileSize, fileSizeLimit } from "../nar/nar_naming.ts";

/**
 * The space of one download: none until an upstream has answered with the file. `undefined` when no
 * eviction can make enough space.
 */
export async function downloadReservation(
  space: Pick<Space, "budget" | "mayFit" | "reserve" | "grow" | "kept">,
  nar: NarRow,
): Promise<GrowingReservation | undefined> {
  const limitBytes = announcedFileSize(nar) ?? fileSizeLimit(nar);
  const firstBytes = announcedFileSize(nar) ?? Math.min(FIRST_STEP_BYTES, limitBytes);
  if (!space.mayFit(firstBytes)) return undefined;
  const reservation = new GrowingReservation(space, { firstBytes, limitBytes });
  // Without a limit one reservation covers every size.
  if (space.budget.limitBytes === Infinity) await reservation.grow(limitBytes);
  return reservation;
}
