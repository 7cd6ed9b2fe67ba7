import type { FakeUpstreamOptions } from "../support/fake_upstream.ts";
import type { LarderFlags } from "../support/larder_process.ts";
import type { ReliabilityRecord, Sight } from "../support/reliability_record.ts";
import type { Scene, Upstreams } from "./scene.ts";

/** A fault, the way to inject it, and the required outcome. */
export interface Row extends ReliabilityRecord {
  /** Of the NAR; default: a million. */
  readonly narBytes?: number;
  readonly upstream?: FakeUpstreamOptions;
  /** A second upstream that has the same object. */
  readonly other?: FakeUpstreamOptions;
  readonly flags?: LarderFlags;
  /** Why it cannot be tried on the back ends of this run; empty where it can. */
  readonly excuse?: string;
  /** Breaks something before larder starts. */
  readonly breaksFirst?: (upstreams: Upstreams) => Promise<unknown>;
  /** Breaks something before the client asks. */
  readonly breaks?: (scene: Scene) => unknown;
  /** In place of a client that asks for narinfo and NAR. */
  readonly asks?: (scene: Scene) => Promise<Sight>;
}
