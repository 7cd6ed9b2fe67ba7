import { messageOf } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import { isMemberId, type MemberId } from "../../base/member_id.ts";
import { files } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { RECEIVED_SUFFIX, type Spool } from "../spool.ts";

export interface LocalSpoolDeps {
  /** This process, which has joined the members already: larder removes folders of no member. */
  readonly member: MemberId;
  readonly log: Logger;
}

/** This member's own folder for partial files, inside the one that all members here share. */
export class LocalSpool implements Spool, Disposable {
  readonly path: string;
  readonly #base: string;
  readonly #deps: LocalSpoolDeps;
  readonly #outage;
  readonly #removalOutage;
  /** Members whose folder could not be removed: the outage lasts as long as one is left. */
  readonly #stuck = new Set<MemberId>();
  #received: string[] = [];
  /** The names of the whole files of others that this folder has, or has had. */
  readonly #had = new Set<string>();
  /** The other name of each file that is shared, by its name here. */
  readonly #shared = new Map<string, string>();

  /** Throws when the folder cannot be made. */
  constructor(base: string, deps: LocalSpoolDeps) {
    this.#base = base;
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "partial-files-read");
    this.#removalOutage = new OutageLog(deps.log, "partial-files-removed");
    this.path = `${base}/${deps.member}`;
    files.mkdirSync(this.path);
  }

  /** Makes the folder again, if another process took this one for dead and removed it. */
  restore(): void {
    files.mkdirSync(this.path, { recursive: true });
  }

  others(): readonly MemberId[] {
    try {
      const names = [...files.readDirSync(this.#base)].map(({ name }) => name);
      this.#outage.worked();
      return names.filter((name) => name !== this.#deps.member && isMemberId(name));
    } catch (error) {
      this.#outage.failed("partial-files-not-read", {
        path: this.#base,
        error: messageOf(error),
      });
      return [];
    }
  }

  /** Whole files of others, which nobody has had from here yet. They are in this folder now. */
  takeReceived(): readonly string[] {
    const paths = this.#received;
    this.#received = [];
    return paths;
  }

  /**
   * Gives the whole files of members that seem to have ended a name in this folder too. Nobody
   * writes to them any more, so a member that lives goes on with its own names.
   */
  share(members: readonly MemberId[]): void {
    for (const member of members) {
      try {
        const path = `${this.#base}/${member}`;
        for (const name of receivedIn(path)) {
          this.#have(name, (own) => {
            files.linkSync(`${path}/${name}`, own);
            this.#shared.set(own, `${path}/${name}`);
          });
        }
      } catch {
        // Without hard links they come with the folder, once the member is dead.
      }
    }
  }

  /**
   * Removes the other name of a shared file before it is stored: a later change of its names would
   * break the seal.
   */
  claim(path: string): void {
    const other = this.#shared.get(path);
    if (other === undefined) return;
    this.#shared.delete(path);
    removeIfPresent(other);
  }

  /** Takes over the member's whole files first. */
  remove(member: MemberId): boolean {
    const { log } = this.#deps;
    const path = `${this.#base}/${member}`;
    try {
      for (const name of receivedIn(path)) {
        this.#have(name, (own) => files.renameSync(`${path}/${name}`, own));
      }
      files.removeSync(path, { recursive: true });
      log.info("folder of partial files removed", { path });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        this.#stuck.add(member);
        // Each is named once: the state changes with the first failure of each.
        const state = [...this.#stuck].toSorted().join();
        this.#removalOutage.failed("partial-files-not-removed", {
          path,
          error: messageOf(error),
        }, state);
        return false;
      }
    }
    this.#stuck.delete(member);
    if (this.#stuck.size === 0) this.#removalOutage.worked();
    return true;
  }

  /** The name is random enough for all members. */
  #have(name: string, get: (path: string) => void): void {
    if (this.#had.has(name)) return;
    const path = `${this.path}/${name}`;
    get(path);
    this.#had.add(name);
    this.#received.push(path);
  }

  /** Whole files stay, for the next process that takes them over. */
  [Symbol.dispose](): void {
    try {
      const received = receivedIn(this.path);
      for (const { name } of received.length === 0 ? [] : files.readDirSync(this.path)) {
        if (!received.includes(name)) files.removeSync(`${this.path}/${name}`, { recursive: true });
      }
      if (received.length === 0) files.removeSync(this.path, { recursive: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      const facts = { path: this.path, error: messageOf(error) };
      this.#removalOutage.failed("partial-files-not-removed", facts);
    }
  }
}

/** Throws NotFound where the folder is gone. */
function receivedIn(folder: string): readonly string[] {
  return [...files.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.endsWith(RECEIVED_SUFFIX));
}
