import type { Bytes } from "../../src/base/bytes.ts";
import { hashOfBaseName } from "../../src/nix/store_path.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Push } from "./uploading.ts";

export interface PusherOptions {
  /** Default: none. */
  readonly token?: string;
  /** Default: Nix's 5. */
  readonly attemptsMax?: number;
}

/** The error that ended a push. */
export class PushFailed extends Error {
  readonly status: number;

  constructor(status: number, what: string) {
    super(`${what} is ${status}`);
    this.status = status;
  }
}

const FIRST_WAIT_MS = 50;

/**
 * Pushes a closure as `nix copy` does, leaf first. Requests each path, and sends the missing ones.
 * Reads the narinfo of each reference before it writes one. Retries the failures that Nix retries.
 */
export async function pushLikeNix(
  url: string,
  pushes: readonly Push[],
  { token, attemptsMax = 5 }: PusherOptions = {},
): Promise<void> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await answered("GET", "/upload/nix-cache-info");
  for (const { narPath, narinfoPath, narinfo, file, object } of pushes) {
    if (await answered("GET", narinfoPath) === 200) continue;
    if (await answered("HEAD", narPath) !== 200) await sent(narPath, file.bytes);
    for (const reference of object.references) {
      if (reference === object.baseName) continue;
      const path = `/upload/${hashOfBaseName(reference)}.narinfo`;
      const status = await answered("GET", path);
      if (status !== 200) throw new PushFailed(status, `GET ${path}`);
    }
    await sent(narinfoPath, narinfo);
  }

  async function sent(path: string, body: Bytes | string): Promise<void> {
    const status = await answered("PUT", path, body);
    if (status !== 200 && status !== 201) throw new PushFailed(status, `PUT ${path}`);
  }

  async function answered(
    method: string,
    path: string,
    body: Bytes | string | null = null,
  ): Promise<number> {
    for (let attempt = 1;; attempt++) {
      const status = await once(method, path, body);
      if (!isRetried(status) || attempt === attemptsMax) return status;
      await clock.pause(FIRST_WAIT_MS * 2 ** attempt);
    }
  }

  async function once(
    method: string,
    path: string,
    body: Bytes | string | null,
  ): Promise<number> {
    try {
      const answer = await fetch(`${url}${path}`, { method, headers, body });
      await answer.body?.cancel();
      return answer.status;
    } catch {
      // The connection broke: larder was killed, say.
      return 599;
    }
  }
}

function isRetried(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
