import type { ChangeOf } from "../metadata_store.ts";
import type { Statements } from "./statements.ts";

/** The statements for pin roots, their names, and the paths that they protect. */
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

  isUnsettled: "SELECT 1 FROM protected_path WHERE expanded = 0 LIMIT 1",
  hasStep: `SELECT 1 FROM protected_path WHERE expanded = 0 UNION ALL
    SELECT 1 FROM protected_path WHERE generation < (SELECT generation FROM stock) LIMIT 1`,
  toExpand: `SELECT path_id, generation, visited FROM protected_path
    WHERE expanded = 0 LIMIT ?`,
  // References that no stored narinfo has are none.
  lastOfReferences: `SELECT max(dst) AS last, count(*) AS count FROM (
    SELECT dst FROM reference WHERE src = ?1 AND dst > ?2
      AND EXISTS (SELECT 1 FROM narinfo WHERE path_id = ?1) ORDER BY dst LIMIT ?3)`,
  setVisited: "UPDATE protected_path SET visited = ? WHERE path_id = ? AND generation = ?",
  // A path with a newer generation is visited again, for that generation.
  setExpanded: "UPDATE protected_path SET expanded = 1 WHERE path_id = ? AND generation = ?",
  expand: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT dst, ?1, 0 FROM reference WHERE src = ?2 AND dst > ?3 AND dst <= ?4
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  // A path that is stored anew may have other references than before.
  expandAgain: "UPDATE protected_path SET expanded = 0, visited = -1 WHERE path_id = ?",
  protectRoot: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT ?, generation, 0 FROM stock WHERE true
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  nextGeneration: "UPDATE stock SET generation = generation + 1",
  protectRoots: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT p.id, s.generation, 0 FROM stock s, pin_root r JOIN path p ON p.hash = r.hash
    WHERE true
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  sweepProtected: `DELETE FROM protected_path WHERE path_id IN (
    SELECT path_id FROM protected_path WHERE generation < (SELECT generation FROM stock) LIMIT ?)`,
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

/** References of one step: it stops the thread for some 3 ms. */
const REFERENCES_MAX = 512;

/** A path whose references are to be visited. */
interface ToExpand {
  readonly path_id: number;
  readonly generation: number;
  /** The last one that was. */
  readonly visited: number;
}

/** The walk over all paths that pins reach. Call each step within a transaction. */
export class Protection {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** A pin was set: protects the closure of its root. */
  pinned(pathId: number): void {
    this.#statements.protectRoot.run(pathId);
  }

  /** A pin, or references of a protected path, were removed: the other pins' closures stay. */
  startAgain(): void {
    this.#statements.nextGeneration.run();
    this.#statements.protectRoots.run();
  }

  /** A narinfo was stored: if it is protected, its references become so. */
  stored(pathId: number): void {
    this.#statements.expandAgain.run(pathId);
  }

  /** True when all protected paths are known. */
  get settled(): boolean {
    return this.#statements.isUnsettled.get() === undefined;
  }

  /** False when `step` would change nothing. */
  get hasStep(): boolean {
    return this.#statements.hasStep.get() !== undefined;
  }

  /**
   * Visits at most `pathsMax` paths, and some references of those; true while more are left.
   */
  step(pathsMax: number): boolean {
    const { toExpand, sweepProtected } = this.#statements;
    const batch = toExpand.all(pathsMax) as unknown as readonly ToExpand[];
    let references = 0;
    for (const path of batch) {
      references += this.#visit(path);
      if (references > REFERENCES_MAX) break;
    }
    if (batch.length > 0) return true;
    return Number(sweepProtected.run(pathsMax).changes) === pathsMax;
  }

  /** Protects the next references of the path; returns how many. */
  #visit({ path_id, generation, visited }: ToExpand): number {
    const { lastOfReferences, expand, setExpanded, setVisited } = this.#statements;
    const next = lastOfReferences.get(path_id, visited, REFERENCES_MAX);
    const count = Number(next?.["count"]);
    if (count < REFERENCES_MAX) setExpanded.run(path_id, generation);
    if (count === 0) return 0;
    const last = Number(next?.["last"]);
    // Before the visit: a path may refer to itself, for a newer generation.
    if (count === REFERENCES_MAX) setVisited.run(last, path_id, generation);
    expand.run(generation, path_id, visited, last);
    return count;
  }
}
