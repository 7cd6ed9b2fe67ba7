import type { ChangeOf } from "../metadata_store.ts";
import type { Statements } from "./statements.ts";

/** The statements for pin roots and their names. */
export const PIN_SQL = {
  putPin: `INSERT INTO pin_root (hash, pinned_at_ms, by_hand) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET by_hand = max(by_hand, excluded.by_hand)`,
  removePin: "DELETE FROM pin_root WHERE hash = ?",

  leaveName: "DELETE FROM pin_name WHERE hash = ? AND name = ?",
  enterName: "INSERT INTO pin_name (hash, name, pinned_at_ms, keep) VALUES (?, ?, ?, ?)",
  setKeep: "UPDATE pin_name SET keep = ?1 WHERE name = ?2 AND keep <> ?1",
  // All but the newest ones: none for an offset beyond the last.
  rollOff: `DELETE FROM pin_name WHERE name = ?1 AND id <= (
      SELECT id FROM pin_name WHERE name = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
    RETURNING hash`,
  unpinRolled: `DELETE FROM pin_root WHERE hash = ?1 AND by_hand = 0
    AND NOT EXISTS (SELECT 1 FROM pin_name WHERE hash = ?1)`,
} as const;

/** Changes the roots that a name holds. True if a root is no longer pinned. */
export function changeName(
  statements: Statements,
  change: ChangeOf<"roll-pin" | "unpin-name">,
): boolean {
  const { name } = change;
  if (change.kind === "roll-pin") {
    const { storePathHash, pinnedAtMs, keep } = change;
    statements.putPin.run(storePathHash, pinnedAtMs, 0);
    // Anew, as the newest one.
    statements.leaveName.run(storePathHash, name);
    statements.enterName.run(storePathHash, name, pinnedAtMs, keep);
    statements.setKeep.run(keep, name);
  }
  const keep = change.kind === "roll-pin" ? change.keep : 0;
  let hasUnpinned = false;
  for (const { hash } of statements.rollOff.all(name, keep)) {
    if (statements.unpinRolled.run(String(hash)).changes !== 0) hasUnpinned = true;
  }
  return hasUnpinned;
}
