import { EitherSignal } from "../../src/base/either_signal.ts";
import type { SecretKey } from "../../src/nix/signature.ts";
import { clock } from "../../src/runtime/current.ts";
import { AS_WRITER, pushOf } from "../support/uploading.ts";
import type { PlayedNetwork } from "./played_net.ts";
import type { SeededDice } from "./seeded_dice.ts";
import { PLAYED_COMPRESSIONS, type WorldObject } from "./world_objects.ts";

/** How an upload ended. "refused": by a status that larder may give to a right one. */
export type PushEnd = "stored" | "refused" | "broken";

export interface PusherParts {
  readonly name: string;
  readonly key: SecretKey;
  readonly network: PlayedNetwork;
  readonly dice: SeededDice;
  /** True where an eviction, or a fault, may take the NAR away before its narinfo comes. */
  readonly mayLose: boolean;
  /** Something that must never happen. */
  readonly wrong: (what: string) => void;
  readonly note: (what: string) => void;
}

/** No room, no answer of a back end, too many requests: a right upload may come again later. */
const LATER_STATUSES: readonly number[] = [408, 413, 429, 503, 507];

const PART_BYTES = 4 * 1024;

/** Nix waits so long for a response. */
const PATIENCE_MS = 300_000;

/** A client that uploads signed store objects, each in parts. */
export class WorldPusher {
  readonly #parts: PusherParts;

  constructor(parts: PusherParts) {
    this.#parts = parts;
  }

  /** Sends the NAR, then the narinfo. It may leave in the middle of the NAR. */
  async push(member: string, { object }: WorldObject): Promise<PushEnd> {
    const { dice, key } = this.#parts;
    const one = await pushOf(object, { compression: dice.pick(PLAYED_COMPRESSIONS), key });
    const leavesAt = dice.happens(0.15) ? dice.below(one.file.bytes.length) : Infinity;
    const nar = await this.#put(member, one.narPath, { bytes: one.file.bytes, leavesAt });
    if (nar !== "stored") return nar;
    if (dice.happens(0.1)) await clock.pause(dice.between(0, 120_000));
    const bytes = new TextEncoder().encode(one.narinfo);
    return await this.#put(member, one.narinfoPath, { bytes, leavesAt: Infinity });
  }

  async #put(member: string, path: string, sent: Sent): Promise<PushEnd> {
    const { network, name, note, wrong } = this.#parts;
    const left = new AbortController();
    using patience = clock.deadline(PATIENCE_MS);
    const headers = new Headers(AS_WRITER);
    headers.set("content-length", `${sent.bytes.length}`);
    try {
      const response = await network.send(name, {
        method: "PUT",
        url: new URL(`http://${member}${path}`),
        headers,
        signal: new EitherSignal(left.signal, patience.signal).signal,
        body: this.#inParts(sent, left),
      });
      await response.body?.cancel();
      const { status } = response;
      note(`PUT ${path} at ${member}: ${status}`);
      if (status < 300) return "stored";
      const isLost = this.#parts.mayLose && status === 422 && path.endsWith(".narinfo");
      if (!isLost && !LATER_STATUSES.includes(status)) wrong(`PUT ${path}: status ${status}`);
      return "refused";
    } catch (error) {
      if (patience.signal.aborted) wrong(`PUT ${path}: no answer for five minutes`);
      note(`PUT ${path} at ${member}: ${error instanceof Error ? error.message : error}`);
      return "broken";
    }
  }

  /** The bytes, with pauses, until the client leaves. */
  #inParts({ bytes, leavesAt }: Sent, left: AbortController): ReadableStream<Uint8Array> {
    const { dice } = this.#parts;
    let position = 0;
    return new ReadableStream({
      async pull(controller) {
        await clock.pause(dice.between(0, 40), left.signal);
        if (position >= leavesAt) {
          const error = new TypeError("the client left");
          left.abort(error);
          return controller.error(error);
        }
        const end = Math.min(bytes.length, leavesAt, position + PART_BYTES);
        if (position < end) controller.enqueue(bytes.slice(position, end));
        position = end;
        if (position === bytes.length) controller.close();
      },
    }, { highWaterMark: 0 });
  }
}

interface Sent {
  readonly bytes: Uint8Array;
  /** The client leaves behind so many bytes. */
  readonly leavesAt: number;
}
