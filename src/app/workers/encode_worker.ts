// The Worker that writes NAR files again in zstd, one at a time.
import type { Bytes } from "../../base/bytes.ts";
import { messageOf } from "../../base/failure.ts";
import { workerScope } from "../../base/worker_scope.ts";
import { encodeNar } from "../../cache/recompress/encode_nar.ts";
import { lowerThreadPriority } from "../../runtime/thread_priority.ts";
import type { FromEncodeWorker, ToEncodeWorker } from "./messages.ts";

lowerThreadPriority();

const scope = workerScope<ToEncodeWorker, FromEncodeWorker>();

const writers = new Map<number, WritableStreamDefaultWriter<Bytes>>();

/** Of those that wait. */
const turns = new Map<number, () => void>();

scope.onmessage = ({ data }) => {
  const writer = writers.get(data.id);
  switch (data.type) {
    case "encode":
      return void encode(data);
    case "piece":
      return void take(data.id, data.bytes);
    case "go":
      return turns.get(data.id)?.();
    case "end":
      return void writer?.close().catch(() => undefined);
    case "cancel":
      turns.get(data.id)?.();
      return void writer?.abort(new Error("cancelled")).catch(() => undefined);
  }
};

async function encode(
  { id, order }: Extract<ToEncodeWorker, { type: "encode" }>,
): Promise<void> {
  const { readable, writable } = new TransformStream<Bytes, Bytes>();
  const writer = writable.getWriter();
  writers.set(id, writer);
  writer.closed.catch(() => undefined);
  const turn = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    turns.set(id, resolve);
    scope.postMessage({ id, waits: true });
    await promise;
    turns.delete(id);
  };
  try {
    scope.postMessage({ id, encoded: await encodeNar(readable, order, turn) });
  } catch (error) {
    scope.postMessage({ id, error: messageOf(error) });
  } finally {
    writers.delete(id);
    // A writer that waits would wait for good.
    await writer.abort().catch(() => undefined);
  }
}

async function take(id: number, bytes: Bytes): Promise<void> {
  await writers.get(id)?.write(bytes).catch(() => undefined);
  scope.postMessage({ id, taken: true });
}
