import type { SceneOptions } from "../simulation/scene.ts";
import type { ReliabilityRecord, Sight } from "../support/reliability_record.ts";
import type { RowScene } from "./row_scene.ts";

/** A fault, the way to inject it, and the required outcome. */
export interface Row extends ReliabilityRecord {
  /** Default: one upstream, with an object of a million bytes. */
  readonly scene?: Partial<SceneOptions>;
  /** The rows are in a file that another process locks. */
  readonly isLocked?: true;
  /** Breaks something before the client asks. */
  readonly breaks?: (scene: RowScene) => void;
  /** In place of a client that asks for narinfo and NAR. */
  readonly asks?: (scene: RowScene) => Promise<Sight>;
  /** What holds after the fault. Default: all upstreams behave, and the object comes whole. */
  readonly mended?: (scene: RowScene) => Promise<void>;
}
