import type { Exchange } from "./exact_server.ts";

/** Every request of a server in the order of arrival, to be counted and waited for. */
export class RequestLog {
  readonly all: Exchange[] = [];
  readonly #base: string;
  #arrived = Promise.withResolvers<void>();

  /** Paths are compared without `base` in front. */
  constructor(base: string) {
    this.#base = base;
  }

  /** Its place among all requests, from 0. */
  add(request: Exchange): number {
    const index = this.all.push(request) - 1;
    const { resolve } = this.#arrived;
    this.#arrived = Promise.withResolvers();
    resolve();
    return index;
  }

  matching(path: string | RegExp, method?: string): readonly Exchange[] {
    return this.all.filter((request) => {
      if (method !== undefined && request.method !== method) return false;
      const below = this.pathOf(request);
      return typeof path === "string" ? below === path : path.test(below);
    });
  }

  async arrived(path: string | RegExp, nth: number): Promise<Exchange> {
    for (;;) {
      const request = this.matching(path)[nth - 1];
      if (request !== undefined) return request;
      await this.#arrived.promise;
    }
  }

  /** The path below the base; another path as it is. */
  pathOf({ path }: Exchange): string {
    return path.startsWith(`${this.#base}/`) ? path.slice(this.#base.length) : path;
  }
}
