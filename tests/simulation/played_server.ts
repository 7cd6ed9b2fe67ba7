import { Answer, statusAnswer } from "../../src/http/message/message.ts";
import {
  HttpServer,
  type HttpServerDeps,
  type HttpServerLimits,
} from "../../src/http/server/http_server.ts";
import { clock, playRuntime } from "../../src/runtime/current.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { RawConnection } from "../support/raw_http.ts";
import { PlayedListener } from "./played_socket.ts";
import { asOwner, VirtualClock } from "./virtual_clock.ts";

type Options = Partial<HttpServerDeps & HttpServerLimits>;

/** No scene with a server alone is longer. */
const SCENE_MAX_MS = 2 * 3_600_000;

/**
 * Registers a scene on virtual time: larder's HTTP server, without a larder, and its clients. Its
 * answers are empty. `options`: other answers, or limits that are not those of production.
 */
export function serverTest(
  name: string,
  options: Options,
  play: (scene: ServerScene) => Promise<void>,
): void {
  Deno.test(name, async () => {
    const played = new VirtualClock();
    using _runtime = playRuntime({ clock: played });
    await asOwner(undefined, () => played.play(playServer(options, play), SCENE_MAX_MS));
  });
}

async function playServer(
  options: Options,
  play: (scene: ServerScene) => Promise<void>,
): Promise<void> {
  const scene = new ServerScene(options);
  await play(scene);
  await scene.end();
}

export class ServerScene {
  readonly server: HttpServer;
  readonly #closed: string[] = [];
  readonly #listener = new PlayedListener();
  readonly #accepting: Promise<void>;
  readonly #startedAtMs = clock.nowMs();

  constructor(options: Options) {
    const noteLine = (line: string) => {
      const { msg, reason } = JSON.parse(line);
      if (msg === "connections closed") this.#closed.push(reason);
    };
    const parts = {
      handle: () => Promise.resolve(new Answer("", 200, {})),
      refuse: ({ status }: { readonly status: number }) => statusAnswer(status, false),
      log: createLogger("info", { write: noteLine }),
      nowMs: () => clock.wallMs(),
      connectionsMax: 1_000,
      // All clients of a scene have one address.
      perAddressMax: Infinity,
      ...options,
    };
    this.server = new HttpServer(parts, parts);
    this.#accepting = this.server.serve(this.#listener);
  }

  /** Since the start of the server. */
  get nowMs(): number {
    return clock.nowMs() - this.#startedAtMs;
  }

  /** Why connections were closed, by the log. */
  get closedReasons(): readonly string[] {
    return this.#closed;
  }

  /** A client's new connection. */
  connect(): RawConnection {
    return new RawConnection(this.#listener.connect());
  }

  async end(): Promise<void> {
    this.#listener.close();
    await this.server.shutdown();
    await this.#accepting;
  }
}
