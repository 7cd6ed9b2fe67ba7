import { cpuSum, type CpuTimes } from "./cpu_times.ts";
import type { Launcher, Server } from "./server.ts";

/** Adds up the processor time of the servers that some launchers start, from their start on. */
export class WatchedLaunches {
  readonly #running = new Set<Server>();
  readonly #ended: CpuTimes[] = [];

  /** The same launcher, with a watch over its servers. */
  watch(launcher: Launcher): Launcher {
    return {
      name: launcher.name,
      launch: async (folder) => {
        const server = await launcher.launch(folder);
        this.#running.add(server);
        return { ...server, [Symbol.asyncDispose]: () => this.#end(server) };
      },
    };
  }

  /** The times so far of all servers, ended ones included. */
  cpuTimes(): CpuTimes {
    return cpuSum([...this.#ended, ...[...this.#running].map((server) => server.cpuTimes())]);
  }

  async #end(server: Server): Promise<void> {
    // The kernel forgets the times of a process with it.
    if (this.#running.delete(server)) this.#ended.push(server.cpuTimes());
    await server[Symbol.asyncDispose]();
  }
}
