import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Bytes } from "../../src/base/bytes.ts";
import { compressionOf } from "../../src/nix/nar_name.ts";
import { type Behaviour, OBJECT, type Scene } from "../simulation/scene.ts";
import { NARS, TEMP } from "../simulation/world_member.ts";
import { decompress } from "../support/decompressors.ts";
import { type RawAnswer, rawExchange, requestText } from "../support/raw_http.ts";
import type { Keeping, Sight } from "../support/reliability_record.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { checkNar, narinfoIn, type ServedNarinfo } from "../support/served_nar.ts";
import { narNameIn } from "../support/storage_look.ts";
import type { StoreObject } from "../support/store_object.ts";

/** Once a fault is over, every path is served within it. */
const MENDED_MS = 60_000;
const LOOK_EVERY_MS = 10;

/** A scene with a client that asks for one store object over HTTP/1, and a look at the storage. */
export class RowScene {
  readonly scene: Scene;
  readonly object: StoreObject;
  readonly databasePath: string | undefined;
  /** True where a false FileSize is the fault. Nix does not compare it. */
  hasFalseFileSize = false;

  constructor(scene: Scene, object = OBJECT, databasePath?: string) {
    this.scene = scene;
    this.object = object;
    this.databasePath = databasePath;
  }

  /** Changes how the first upstream behaves. */
  behave(behaviour: Behaviour): void {
    this.scene.behave(0, behaviour);
  }

  /** Sends a request on a connection of its own. */
  request(method: string, path: string, headers?: Record<string, string>): Promise<RawAnswer> {
    return rawExchange(this.scene.connect(), requestText(method, path, headers));
  }

  async narinfo({ storePathHash } = this.object): Promise<ServedNarinfo> {
    return narinfoIn(await this.request("GET", `/${storePathHash}.narinfo`));
  }

  /** Asks as Nix does: for the narinfo, then for the NAR. */
  async pull({ storePathHash } = this.object): Promise<Sight> {
    const answer = await this.request("GET", `/${storePathHash}.narinfo`);
    if (answer.status === 404) return "absent";
    const narinfo = narinfoIn(answer);
    return await this.sightOf(await this.request("GET", narinfo.narPath), narinfo);
  }

  /**
   * The view of a client that gets this response for the NAR. Fails for 5xx, and for a response
   * that looks whole and is wrong.
   */
  async sightOf(answer: RawAnswer, narinfo: ServedNarinfo): Promise<Sight> {
    if (answer.status === 404) return "absent";
    assert.equal(answer.status, 200);
    if (!answer.complete) return "cut";
    const { fileSize } = narinfo;
    const told = { ...narinfo, fileSize: this.hasFalseFileSize ? undefined : fileSize };
    await checkNar(told, answer.body);
    return "whole";
  }

  /** The state of an object in the storage, once no work is running. */
  async kept({ storePathHash, nar } = this.object): Promise<Keeping> {
    await this.quiet();
    const { files } = this.scene;
    const there = files.paths(NARS).map((path) =>
      `${narNameIn(path)} ${files.statSync(path).size}`
    );
    const counted = this.#rows("SELECT name, kept_size FROM nar WHERE kept_size IS NOT NULL")
      .map(([name, size]) => `${name} ${size}`);
    if (counted.sort().join() !== there.sort().join()) return "damaged";
    const [row] = this.#rows(
      "SELECT n.name, n.kept_size FROM path p JOIN narinfo i ON i.path_id = p.id " +
        `JOIN nar n ON n.id = i.nar_id WHERE p.hash = '${storePathHash}'`,
    );
    if (row === undefined) return this.#rows(STAGED).length > 0 ? "staged" : "nothing";
    const [name, size] = row;
    if (size === null) return "narinfo";
    const path = files.paths(NARS).find((one) => narNameIn(one) === name) ?? "";
    const compression = compressionOf(narNameIn(path));
    assertSameBytes(await decompress(this.#bytesOf(path), compression), nar);
    return "nar";
  }

  /** Resolves when nothing downloads, comes in or is removed. */
  async quiet(): Promise<void> {
    await this.scene.downloadsOver();
    await this.until(() => this.growingBytes === 0 && this.#rows(PENDING).length === 0);
  }

  /** The bytes of files that are not whole. */
  get growingBytes(): number {
    return this.scene.files.bytesBelow(TEMP);
  }

  /** Ends all faults of upstreams, and resolves when the object comes whole. */
  async mended(): Promise<void> {
    const { scene } = this;
    for (const at of scene.upstreams.keys()) scene.behave(at);
    const endMs = scene.nowMs + MENDED_MS;
    while (await this.pull() !== "whole") {
      assert.ok(scene.nowMs < endMs, "it comes whole within a minute");
      await scene.pause(1_000);
    }
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.scene.pause(LOOK_EVERY_MS);
  }

  /** The path of the one stored NAR. */
  get storedPath(): string {
    const [path, ...others] = this.scene.files.paths(NARS);
    assert.ok(path !== undefined && others.length === 0);
    return path;
  }

  /** Locks the rows as another process does. The result frees them. */
  lock(): () => void {
    const locker = new DatabaseSync(this.databasePath ?? "");
    locker.exec("BEGIN IMMEDIATE");
    return () => {
      locker.exec("COMMIT");
      locker.close();
    };
  }

  #rows(sql: string): (readonly unknown[])[] {
    return this.scene.database.prepare(sql).all().map((row) => Object.values(row));
  }

  #bytesOf(path: string): Bytes {
    using file = this.scene.files.openSync(path);
    const bytes = new Uint8Array(file.statSync().size);
    file.readSync(bytes);
    return bytes;
  }
}

const PENDING = "SELECT nar_id FROM pending_file";
const STAGED = "SELECT name FROM nar WHERE kept_size IS NOT NULL " +
  "AND id NOT IN (SELECT nar_id FROM narinfo WHERE nar_id IS NOT NULL)";
