import type { Bytes } from "../../src/base/bytes.ts";
import type { ByteSource } from "../../src/base/direct_stream.ts";
import { Notifier } from "../../src/base/notifier.ts";
import { GrowingFile, GrowingSource, StreamSource } from "../../src/cache/download/growing_file.ts";
import { OpenNarFile } from "../../src/storage/local/local_nar_store.ts";
import { memorySource } from "../support/memory_source.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { byteSourceClauses, FILE, HALF, type SourceScene } from "./byte_source_contract.ts";
import { checkContract } from "./contract.ts";

type Fault = "waits" | "breaks" | undefined;

/** The folder and the stream of the sources of one clause. */
class Parts {
  readonly folder = tempFolder();
  readonly arrived = Promise.withResolvers<void>();
  isReleased = () => false;

  /** A file with these bytes of FILE. */
  file(end = FILE.length): string {
    const path = `${this.folder.path}/file`;
    Deno.writeFileSync(path, FILE.subarray(0, end));
    return path;
  }

  /** The bytes from `start` on, in pieces of four at most; one of them has no bytes. */
  stream(fault: Fault, start = 0): ReadableStream<Bytes> {
    let isCancelled = false;
    let isOver = false;
    let at = start;
    let pulls = 0;
    this.isReleased = () => isCancelled || isOver;
    return new ReadableStream({
      pull: async (controller) => {
        if (at === HALF && fault === "waits") await this.arrived.promise;
        if (isCancelled) return;
        isOver = at === FILE.length || at === HALF && fault === "breaks";
        if (isOver && at === HALF) return controller.error(new Error("it broke"));
        if (isOver) return controller.close();
        const end = pulls++ === 1 ? at : Math.min(at + 4, at < HALF ? HALF : FILE.length);
        controller.enqueue(FILE.slice(at, end));
        at = end;
      },
      cancel: () => void (isCancelled = true),
    }, { highWaterMark: 0 });
  }
}

type Opener = (parts: Parts, fault: Fault) => ByteSource;

/** Bytes of FILE in a failed download; the rest comes from elsewhere. */
const KEPT = 2;

const openers: Readonly<Record<string, Opener>> = {
  StreamSource: (parts, fault) => new StreamSource(parts.stream(fault)),

  GrowingSource: (parts, fault) => {
    const changed = new Notifier();
    let length = fault === undefined ? FILE.length : HALF;
    parts.arrived.promise.then(() => {
      length = FILE.length;
      changed.notify();
    });
    const readable = (position: number) => {
      if (position < length) return length - position;
      if (fault === "breaks") throw new Error("the download has failed");
      return length === FILE.length ? 0 : undefined;
    };
    return growing(parts, { length: FILE.length, changed, readable, restAfter: () => undefined });
  },

  "GrowingSource with its rest from elsewhere": (parts, fault) =>
    growing(parts, {
      length: KEPT,
      changed: new Notifier(),
      readable(position) {
        if (position < KEPT) return KEPT - position;
        throw new Error("it is not kept");
      },
      restAfter: (_failure, position) => parts.stream(fault, position),
    }),

  OpenNarFile: (parts, fault) => {
    const path = parts.file();
    const file = Deno.openSync(path);
    parts.isReleased = () => isClosed(file);
    const { source } = new OpenNarFile(file).read(0, FILE.length);
    if (fault === "breaks") Deno.truncateSync(path, HALF);
    return source;
  },

  memorySource: () => memorySource(FILE),
};

const FILES_ARE_HERE = "its bytes are here from the start";

const exemptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  OpenNarFile: {
    "a read that waits lends no buffer before its bytes arrive": FILES_ARE_HERE,
    "close() ends a read that waits": FILES_ARE_HERE,
  },
  memorySource: {
    "a read that waits lends no buffer before its bytes arrive": FILES_ARE_HERE,
    "close() ends a read that waits": FILES_ARE_HERE,
    "missing bytes are a throw, behind the bytes before them": "memory does not break",
    "a stream of it breaks where bytes are missing, and closes it": "memory does not break",
    "close() gives back what it reads from, and may be called twice": "it has memory alone",
    "a stream of it has each byte once, and closes it at the end": "it has memory alone",
    "a stream that is cancelled closes it": "it has memory alone",
  },
};

for (const [name, open] of Object.entries(openers)) {
  const exempt = exemptions[name] ?? {};
  checkContract({ name, exempt, open: async () => sceneOf(open) }, byteSourceClauses);
}

function sceneOf(open: Opener): SourceScene & AsyncDisposable {
  const parts = new Parts();
  return {
    open: (fault) => open(parts, fault),
    arrive: () => parts.arrived.resolve(),
    isReleased: () => parts.isReleased(),
    [Symbol.asyncDispose]: async () => {
      parts.arrived.resolve();
      parts.folder[Symbol.dispose]();
    },
  };
}

interface Growing {
  readonly length: number;
  readonly changed: Notifier;
  readonly readable: (position: number) => number | undefined;
  readonly restAfter: (failure: unknown, position: number) => ReadableStream<Bytes> | undefined;
}

function growing(parts: Parts, { length, ...growth }: Growing): GrowingSource {
  const file = new GrowingFile(parts.file(length));
  const use = file.use();
  let uses = 1;
  parts.isReleased = () => uses === 0;
  const counted = {
    [Symbol.dispose]() {
      uses--;
      use[Symbol.dispose]();
    },
  };
  return new GrowingSource({ file, start: 0, use: counted, ...growth });
}

function isClosed(file: Deno.FsFile): boolean {
  try {
    file.statSync();
    return false;
  } catch {
    return true;
  }
}
