import { messageOf } from "../../src/base/failure.ts";
import type { FakeUpstream } from "../../tests/support/fake_upstream.ts";
import { NIX_UNAVAILABLE, NixClient } from "../../tests/support/nix_client.ts";
import type { Dice } from "../soak/dice.ts";
import type { Tally } from "../soak/tally.ts";
import type { Cluster } from "./cluster.ts";
import type { GrowingWorld } from "./growing_world.ts";

export interface NixParts {
  readonly world: GrowingWorld;
  readonly upstream: FakeUpstream;
  readonly cluster: Cluster;
  readonly tally: Tally;
  readonly dice: Dice;
  readonly isOver: () => boolean;
}

/** A real Nix copies closures of random paths, each into an empty store. */
export async function pullWithNix(parts: NixParts): Promise<void> {
  const { world, upstream, cluster, tally, dice, isOver } = parts;
  while (NIX_UNAVAILABLE === "" && !isOver()) {
    using nix = new NixClient();
    const { storePath } = dice.pick(world.objects);
    const from = cluster.replicas.map(({ port }) => `http://127.0.0.1:${port}`);
    try {
      await nix.realise(storePath, { from, trust: [upstream.publicKey] });
      tally.count("nix: closure");
    } catch (error) {
      // With one replica away, its substituters may all be.
      tally.count("nix: no closure");
      if (/hash mismatch|corrupt/.test(messageOf(error))) tally.wrong(messageOf(error));
    }
  }
}
