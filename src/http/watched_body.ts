import type { Sending } from "./answer.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A body that counts what is taken from it, and knows whether it came to its end. */
export class WatchedBody implements Sending {
  readonly body: ReadableStream<Bytes>;
  #bytes = 0;
  #end: "open" | "whole" | "broken" = "open";

  /** `length` is that of the whole body, where it is known. */
  constructor(inner: ReadableStream<Bytes>, length: number | undefined) {
    const reader = inner.getReader();
    this.body = new ReadableStream<Bytes>({
      pull: async (controller) => {
        try {
          const { value, done } = await reader.read();
          if (done) {
            this.#end = "whole";
            return controller.close();
          }
          this.#bytes += value.length;
          // Of a body whose length was announced nobody asks what is behind its last byte.
          if (this.#bytes === length) this.#end = "whole";
          controller.enqueue(value);
        } catch (error) {
          this.#end = "broken";
          controller.error(error);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
  }

  bytes(): number {
    return this.#bytes;
  }

  end(): "open" | "whole" | "broken" {
    return this.#end;
  }
}
