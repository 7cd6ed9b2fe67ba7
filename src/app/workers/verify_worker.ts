// The Worker that decompresses and hashes NARs.
import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Bzip2Speaker } from "../../cache/forms/spoken_bzip2.ts";
import { decodeBody } from "../../cache/verify/decode_body.ts";
import { dropUnusedDecoders } from "../../cache/verify/decoders.ts";
import { Growth, measureNar } from "../../cache/verify/measure_nar.ts";
import { SlicedPace } from "../../cache/verify/pace.ts";
import { PassThroughMeasure } from "../../cache/verify/pass_through_measure.ts";
import { clock } from "../../runtime/current.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";
import { type WorkerScope, workerScope } from "../../base/worker_scope.ts";

/** Memory for all decoders of pass-throughs; most take 2 to 8 MiB. */
const PASS_THROUGH_BYTES_MAX = 256 << 20;

/** A quiet time as long as this gives the decoders' memory back. */
const QUIET_MS = 60_000;

/** Runs the thread behind `scope`. Disposing of the result frees what its end would. */
export function runVerifyThread(
  scope: WorkerScope<ToVerifyWorker, FromVerifyWorker>,
): Disposable {
  const quiet = clock.every(QUIET_MS, dropUnusedDecoders, false);

  const inFlight = new Map<number, Growth>();
  const paces = new Map<number, SlicedPace>();
  const passThroughs = new Map<number, PassThroughMeasure>();
  const passThroughMemory = new MemoryAllowance(PASS_THROUGH_BYTES_MAX);
  const post = (message: FromVerifyWorker) => scope.postMessage(message);

  scope.onmessage = ({ data }) => {
    switch (data.type) {
      case "verify":
        return void run(data);
      case "grown":
        return inFlight.get(data.id)?.grown(data.fileSize, data.whole);
      case "passThrough":
        return void passThrough(data);
      case "piece":
        return void take(data.id, data.bytes);
      case "end":
        return passThroughs.get(data.id)?.end();
      case "decode":
        return void decode(data);
      case "goOn":
        passThroughs.get(data.id)?.goOn(data.spare);
        return paces.get(data.id)?.goOn();
      case "cancel":
        passThroughs.get(data.id)?.abort();
        inFlight.get(data.id)?.end();
        return paces.get(data.id)?.end();
    }
  };

  async function passThrough(
    { id, order, givesNar }: Extract<ToVerifyWorker, { type: "passThrough" }>,
  ): Promise<void> {
    const give = (narPiece: Bytes) => scope.postMessage({ id, narPiece }, [narPiece.buffer]);
    const { bzip2From, narSizeMax } = order;
    const speaker = bzip2From === undefined ? undefined : new Bzip2Speaker(narSizeMax, bzip2From);
    const taker = givesNar ? give : undefined;
    const measure = new PassThroughMeasure(order, passThroughMemory, taker, speaker);
    passThroughs.set(id, measure);
    try {
      post({ id, passed: await measure.measure });
    } catch (error) {
      const isRefused = error instanceof Failure && error.kind === "unavailable";
      post({ id, error: messageOf(error), ...(isRefused ? { isRefused } : {}) });
    } finally {
      passThroughs.delete(id);
    }
  }

  async function take(id: number, bytes: Bytes): Promise<void> {
    await passThroughs.get(id)?.write(bytes);
    post({ id, taken: true });
  }

  async function run(
    { id, order, fileSize, whole }: Extract<ToVerifyWorker, { type: "verify" }>,
  ): Promise<void> {
    const growth = new Growth();
    growth.grown(fileSize, whole);
    inFlight.set(id, growth);
    try {
      const pace = order.turns === undefined ? undefined : slicedPace(id);
      const measure = await measureNar(order, growth, pace);
      const nar = measure.kind === "measured" ? measure.nar : undefined;
      scope.postMessage({ id, measure }, nar && [nar.buffer]);
    } catch (error) {
      post({ id, error: messageOf(error) });
    } finally {
      inFlight.delete(id);
      paces.delete(id);
    }
  }

  async function decode(
    { id, order, bytes }: Extract<ToVerifyWorker, { type: "decode" }>,
  ): Promise<void> {
    try {
      post({ id, body: await decodeBody(bytes, order, slicedPace(id)) });
    } catch (error) {
      post({ id, error: messageOf(error) });
    } finally {
      paces.delete(id);
    }
  }

  function slicedPace(id: number): SlicedPace {
    const pace = new SlicedPace((pause) => post({ id, pause }));
    paces.set(id, pace);
    return pace;
  }

  return quiet;
}

if (import.meta.main) runVerifyThread(workerScope());
