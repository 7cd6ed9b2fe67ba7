/** Decoders' WebAssembly modules of finished files, for the next ones: to make one takes time. */
export class IdleModules<Module> {
  readonly #max: number;
  #modules: Module[] = [];
  #isUsed = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** `undefined` where a new one has to be made. */
  take(): Module | undefined {
    this.#isUsed = true;
    return this.#modules.pop();
  }

  keep(module: Module): void {
    this.#isUsed = true;
    if (this.#modules.length < this.#max) this.#modules.push(module);
  }

  /** Drops them unless a file began or ended since the last call. */
  dropUnused(): void {
    if (!this.#isUsed) this.#modules = [];
    this.#isUsed = false;
  }
}
