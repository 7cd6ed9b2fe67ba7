import { Failure } from "../../base/failure.ts";
import { resolveLocation } from "../location.ts";
import { readStatus } from "../reading.ts";
import type { NarBody, NarBodySource } from "../upstream.ts";
import { Exchange } from "./exchange.ts";
import type { HttpUpstreamSettings } from "./http_settings.ts";
import { readRefusal } from "./refusal.ts";

/** The NAR files of a binary cache behind HTTP. */
export class HttpNarSource implements NarBodySource {
  readonly url: string;
  readonly #exchange: Exchange;

  constructor(settings: HttpUpstreamSettings, client: Deno.HttpClient) {
    this.url = settings.url;
    this.#exchange = new Exchange(settings, client);
  }

  async openNar(
    location: string,
    offset: number,
    signal: AbortSignal,
  ): Promise<NarBody | undefined> {
    const url = this.#locate(location);
    const headers = offset > 0 ? { range: `bytes=${offset}-` } : {};
    return await this.#exchange.run(url, { headers, signal }, async (response) => {
      const found = await this.#foundOrAbsent(response);
      if (!found || response.body === null) return undefined;
      const fileSize = response.status === 206
        ? Number(/\/([0-9]+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? NaN)
        : Number(response.headers.get("content-length") ?? NaN);
      return {
        ...(Number.isSafeInteger(fileSize) ? { fileSize } : {}),
        offset: response.status === 206 ? offset : 0,
        body: response.body,
      };
    });
  }

  async statNar(location: string): Promise<{ fileSize?: number } | undefined> {
    const url = this.#locate(location);
    const stat = (method: "HEAD" | "GET") =>
      this.#exchange.run(url, { method }, async (response) => {
        if (!await this.#foundOrAbsent(response)) return undefined;
        await response.body?.cancel();
        const length = response.headers.get("content-length");
        return length === null ? {} : { fileSize: Number(length) };
      });
    try {
      return await stat("HEAD");
    } catch {
      // Some caches answer GET alone; its body is not read.
      return await stat("GET");
    }
  }

  #locate(location: string): URL {
    const url = resolveLocation(this.url, location);
    if (url !== undefined) return url;
    throw new Failure("corrupt", "Cannot ask for NAR: its location leaves the upstream", {
      upstream: this.url,
      location,
    });
  }

  async #foundOrAbsent(response: Response): Promise<boolean> {
    const encoding = response.headers.get("content-encoding") ?? "identity";
    if (readStatus(response.status) === "found" && encoding === "identity") return true;
    const reading = await readRefusal(response);
    if (reading.kind === "absent") return false;
    throw new Failure(
      "upstream-down",
      `Cannot get NAR: HTTP status ${response.status}, content encoding ${encoding}`,
    );
  }
}
