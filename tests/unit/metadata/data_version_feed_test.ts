import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Changed } from "../../../src/metadata/change_feed.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { DataVersionFeed } from "../../../src/metadata/sqlite/data_version_feed.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../../support/eventually.ts";
import { hash, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("DataVersionFeed: every subscriber hears of a change until it leaves", async () => {
  const scene = new Scene();
  const [left, stays]: [Changed[], Changed[]] = [[], []];
  const leaving = scene.feed.subscribe((changed) => void left.push(changed));
  await using _stays = scene.feed.subscribe((changed) => void stays.push(changed));
  await scene.become(2);
  await leaving[Symbol.asyncDispose]();
  await scene.become(3);
  assert.deepEqual([left, stays], [["all"], ["all", "all"]]);
});

Deno.test("DataVersionFeed: what changed while nobody could look is one notice later", async () => {
  const scene = new Scene();
  const heard: Changed[] = [];
  await using _heard = scene.feed.subscribe((changed) => void heard.push(changed));
  scene.fails = true;
  await scene.become(2);
  await scene.become(3);
  assert.deepEqual(heard, []);
  scene.fails = false;
  await scene.polled();
  assert.deepEqual(heard, ["all"]);
});

Deno.test("DataVersionFeed: nothing is looked at while nobody subscribes", async () => {
  const scene = new Scene();
  await scene.feed.subscribe(() => undefined)[Symbol.asyncDispose]();
  const { looks } = scene;
  scene.version = 2;
  const heard: Changed[] = [];
  await using _heard = scene.feed.subscribe((changed) => void heard.push(changed));
  await scene.polled();
  // One look when the second subscriber came, which makes the change a thing of the past.
  assert.ok(scene.looks >= looks + 2);
  assert.deepEqual(heard, []);
});

Deno.test("SqliteMetadataStore: the feed tells of others' writes, never of its own", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const database = await openDatabase(path);
  await using store = new SqliteMetadataStore(database);
  const statement = database.prepare("PRAGMA data_version");
  let looks = 0;
  const version = () => (looks++, statement.get()?.["data_version"]);
  const feed = new DataVersionFeed({ version, pollEveryMs: 2 });
  const heard: Changed[] = [];
  await using _heard = feed.subscribe((changed) => void heard.push(changed));
  await using _ofStore = store.subscribe((changed) => void heard.push(changed));
  await store.apply([put(hash("ours"), [])]);
  const looked = looks;
  await eventually("it is looked at twice more", () => looks > looked + 1);
  assert.deepEqual(heard, []);
  {
    using other = new DatabaseSync(path);
    other.exec("DELETE FROM narinfo");
  }
  await eventually("both feeds tell", () => heard.length === 2);
});

/** A feed of a version that the test sets. */
class Scene {
  version = 1;
  fails = false;
  looks = 0;
  readonly feed = new DataVersionFeed({ version: () => this.#look(), pollEveryMs: 1 });

  /** Resolves when a poll that began later has ended. */
  async polled(): Promise<void> {
    const { looks } = this;
    await eventually("it is looked at", () => this.looks > looks + 1);
  }

  async become(version: number): Promise<void> {
    this.version = version;
    await this.polled();
  }

  #look(): number {
    this.looks++;
    if (this.fails) throw new Error("the disk does not answer");
    return this.version;
  }
}
