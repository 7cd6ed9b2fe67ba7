import { NOBODY } from "../../base/member_id.ts";
import { narNameOf, publishIdOf } from "../../nix/stored_name.ts";
import {
  type Change,
  type ChangeOf,
  IntentLost,
  Irreplaceable,
  ReservationLost,
} from "../metadata_store.ts";
import type { Statements } from "./statements.ts";

/** A change to the stored objects of a NAR. */
export type FileChange = ChangeOf<Extract<Change["kind"], `nar-${string}`>>;

/** Call it within a transaction. Changes nothing where no narinfo ever named the NAR. */
export function changeFile(statements: Statements, change: FileChange): void {
  const at = change.kind === "nar-kept" ? change.file.at : change.at;
  const narId = statements.narId.get(narNameOf(at))?.["id"] as number | undefined;
  if (narId === undefined) return;
  const id = publishIdOf(at);
  switch (change.kind) {
    case "nar-publishing":
      statements.publishNar.run(narId, id, change.owner);
      return;
    case "nar-kept":
      return keep(statements, narId, change);
    case "nar-sealed":
      statements.sealNar.run(change.seal, narId, id);
      return;
    case "nar-broken":
      statements.breakNar.run(change.atMs, narId);
      return;
    case "nar-marked":
      if (Number(statements.markNar.run(change.owner, narId, id).changes) === 0) return;
      statements.unkeepNar.run(narId);
      if (change.isLost) statements.loseNar.run(narId);
      statements.stageNar.run(0, narId);
      return;
    case "nar-taken":
      if (Number(statements.takeNar.run(NOBODY, narId, id).changes) === 0) throw new IntentLost(at);
      return;
    case "nar-stuck":
      statements.addStuck.run(narId, id, change.owner, change.fileSize);
      return;
    case "nar-gone":
      statements.settle.run(narId, id);
      return;
  }
}

function keep(statements: Statements, narId: number, change: ChangeOf<"nar-kept">): void {
  const { file, owner, atMs, reservedBytes, replaces } = change;
  const { at, seal = null, fileHash, fileSize, keptAtMs = null, form = null } = file;
  const id = publishIdOf(at);
  const intent = statements.settle.get(narId, id);
  if (intent?.["owner"] !== owner) throw new IntentLost(at);
  if (replaces !== undefined) {
    const { replaceableNar } = statements;
    const former = publishIdOf(replaces.at);
    if (replaceableNar.get(narId, former, replaces.quietSinceMs) === undefined) {
      throw new Irreplaceable(at);
    }
  }
  if (reservedBytes !== undefined) {
    const { changes } = statements.unreserve.run(reservedBytes, owner);
    if (Number(changes) === 0) throw new ReservationLost(at);
  }
  statements.markFormerNar.run(owner, narId, id);
  statements.keepNar.run(id, seal, fileHash, fileSize, keptAtMs, form, narId);
  statements.addLooseNar.run(atMs, narId);
}
