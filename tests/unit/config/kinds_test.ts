import assert from "node:assert/strict";
import fc from "fast-check";
import {
  boolean,
  bucketName,
  choice,
  hostName,
  integer,
  path,
  plainName,
  text,
} from "../../../src/config/kinds/plain.ts";
import { databaseUrl } from "../../../src/config/kinds/database_url.ts";
import {
  duration,
  DURATION_MS_MAX,
  durationOrOff,
  retention,
} from "../../../src/config/kinds/duration.ts";
import { listenAddress } from "../../../src/config/kinds/addresses.ts";
import { listOf } from "../../../src/config/kinds/list.ts";
import { publicKey } from "../../../src/config/kinds/public_key.ts";
import { schedule, timeZone } from "../../../src/config/kinds/schedule.ts";
import { size } from "../../../src/config/kinds/size.ts";
import { upstreamUrl } from "../../../src/config/kinds/upstream_url.ts";
import type { Kind } from "../../../src/config/kinds/option.ts";
import { checkProperty } from "../../support/property.ts";

const KEY = "cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=";

interface Sample {
  readonly kind: Kind<unknown>;
  readonly accepts: Readonly<Record<string, unknown>>;
  readonly refuses: readonly string[];
}

const H = 3_600_000;
const D = 24 * H;

const SAMPLES: Readonly<Record<string, Sample>> = {
  boolean: {
    kind: boolean,
    accepts: { true: true, false: false, 1: true, 0: false },
    refuses: ["", "yes", "TRUE", "2"],
  },
  text: { kind: text, accepts: { "a b": "a b" }, refuses: [""] },
  path: { kind: path, accepts: { "/a b": "/a b", "./x": "./x" }, refuses: ["", "a\0b"] },
  plainName: { kind: plainName, accepts: { "a.b-c_1": "a.b-c_1" }, refuses: ["", "a b", "a:b"] },
  integer: {
    kind: integer(1, 40),
    accepts: { 1: 1, 40: 40 },
    refuses: ["", "0", "41", "1.5", "1e1", " 1", "0x1", "Infinity"],
  },
  hostName: {
    kind: hostName,
    accepts: { localhost: "localhost", "Cache.Example-1.org.": "Cache.Example-1.org." },
    refuses: ["", "a b", "a:80", "http://a", "[::1]", "*", ".a", "-a", "a-", "a/b", "a@b", "é"],
  },
  bucketName: {
    kind: bucketName,
    accepts: { "nix-cache.1": "nix-cache.1", "3ab": "3ab", "Nix_cache": "Nix_cache" },
    refuses: ["", "ab", "a".repeat(256), "-nix", ".nix", "s3://nix", "nix/a", "nix cache", "é23"],
  },
  choice: { kind: choice("a", "b"), accepts: { a: "a", b: "b" }, refuses: ["", "c", "A"] },
  list: {
    kind: listOf(integer(0, 9)),
    accepts: { "1,2": [1, 2], "1 2\n3": [1, 2, 3], " 1 , 2,": [1, 2], "": [] },
    refuses: ["1,x"],
  },
  size: {
    kind: size,
    accepts: {
      0: 0,
      1000: 1000,
      "7B": 7,
      "5K": 5 * 1024,
      "5KB": 5 * 1024,
      "10G": 10 * 2 ** 30,
      "10g": 10 * 2 ** 30,
      "1.5T": 1.5 * 2 ** 40,
      "50GiB": 50 * 2 ** 30,
      "1KiB": 1024,
      "2MiB": 2 * 2 ** 20,
      "3TiB": 3 * 2 ** 40,
      "4gib": 4 * 2 ** 30,
    },
    refuses: ["", "G", "-1", "1.5", "1.5B", "1X", "1 G", "1GG", "1Gi", "1iB", "9000P", "1.K"],
  },
  duration: {
    kind: duration,
    accepts: {
      "30s": 30_000,
      "5m": 300_000,
      "1h30m": 1.5 * H,
      "250ms": 250,
      "0.5s": 500,
      "1h1m1s1ms": H + 61_001,
      "576h": DURATION_MS_MAX,
    },
    refuses: ["", "0", "0s", "5", "-5s", "1m1h", "1s1s", "5 s", "577h", "1d", "h"],
  },
  durationOrOff: {
    kind: durationOrOff,
    accepts: { "0s": 0, 0: 0, "1s": 1_000 },
    refuses: ["", "5"],
  },
  retention: {
    kind: retention,
    accepts: { 0: 0, "0s": 0, "180d": 180 * D, "1d12h": 36 * H, "36h": 36 * H, "1.5d": 36 * H },
    refuses: ["", "never", "180", "-1d", "1h", "23h", "36501d", "1h1d", "d", "1d1", "1d 1h"],
  },
  listenAddress: {
    kind: listenAddress,
    accepts: {
      ":8501": { kind: "tcp", port: 8501 },
      ":0": { kind: "tcp", port: 0 },
      "localhost:80": { kind: "tcp", hostname: "localhost", port: 80 },
      "0.0.0.0:80": { kind: "tcp", hostname: "0.0.0.0", port: 80 },
      "[::1]:80": { kind: "tcp", hostname: "::1", port: 80 },
      "unix:/run/l.sock": { kind: "unix", path: "/run/l.sock" },
    },
    refuses: [
      "",
      "8501",
      "host",
      ":65536",
      ":-1",
      ":x",
      "::1:80",
      "[::1]",
      "[x]:80",
      "a b:80",
      "http://x:80",
      "unix:",
      `unix:/${"a".repeat(107)}`,
    ],
  },
  databaseUrl: {
    kind: databaseUrl,
    accepts: {
      "sqlite:/var/db.sqlite": { kind: "sqlite", path: "/var/db.sqlite" },
      "sqlite:///var/db.sqlite": { kind: "sqlite", path: "/var/db.sqlite" },
      "sqlite:./db.sqlite": { kind: "sqlite", path: "./db.sqlite" },
      "postgres://u:p@h:5433/db?sslmode=verify-full": {
        kind: "postgres",
        url: "postgres://u:p@h:5433/db?sslmode=verify-full",
      },
      "postgresql:///db?host=/run/postgresql": {
        kind: "postgres",
        url: "postgresql:///db?host=/run/postgresql",
      },
    },
    refuses: [
      ...["", "sqlite:", "sqlite://x/y", "sqlite::memory:", "/db", "mysql://x", "sqlite:/a?b"],
      ...["postgres:db", "postgres://h", "postgres://h/", "postgres://(hidden)@h/db"],
      ...["postgres://h/db?sslmode=allow", "postgres://h/db?sslmode=verify-ca"],
    ],
  },
  upstreamUrl: {
    kind: upstreamUrl,
    accepts: {
      "https://a.example": { url: "https://a.example" },
      "HTTPS://A.example:443/": { url: "https://a.example" },
      "http://a.example:8080/b//": { url: "http://a.example:8080/b" },
      "https://a.example/b?priority=5": { url: "https://a.example/b", priority: 5 },
      "https://u:p@a.example/": { url: "https://u:p@a.example" },
      "https://u@a.example": { url: "https://u@a.example" },
      "https://u:%40%25@a.example": { url: "https://u:%40%25@a.example" },
    },
    refuses: [
      "",
      "a.example",
      "ftp://a.example",
      "https:a.example",
      "https://",
      "https://a.example#x",
      "https://a.example/ b",
      "https://a.example?x=1",
      "https://a.example?priority=0",
      "https://a.example?priority=1.5",
      "https://a.example?priority=9999999999",
      "https://a.example?priority=1&x=1",
      "https://(hidden)@a.example",
      "https://a%zz:b@a.example",
      "https://a:%ff@a.example",
    ],
  },
};

for (const [name, { kind, accepts, refuses }] of Object.entries(SAMPLES)) {
  Deno.test(`${name}: reads each way to write a value, and printing undoes reading`, () => {
    for (const [given, value] of Object.entries(accepts)) {
      assert.deepEqual(kind.parse(given), value, given);
      assert.deepEqual(kind.parse(kind.print(value)), value, given);
    }
  });

  Deno.test(`${name}: refuses anything else with a message of one line`, () => {
    for (const given of refuses) {
      assert.throws(() => kind.parse(given), (error) => {
        assert.ok(error instanceof Error);
        assert.match(error.message, /^[^\n]*[^.\n]$/, given);
        return true;
      }, given);
    }
  });
}

Deno.test("publicKey: reads a key and prints the same text", () => {
  assert.equal(publicKey.print(publicKey.parse(KEY)), KEY);
  assert.throws(() => publicKey.parse("name:abcd"), /base64 of the 32 bytes/);
});

Deno.test("publicKey: a secret key given by mistake is not shown", () => {
  const secret = `name:${"A".repeat(86)}==`;

  assert.throws(() => publicKey.parse(secret));
  assert.equal(publicKey.redact?.(secret), "name:(hidden)");
  assert.equal(publicKey.redact?.(KEY), KEY);
});

Deno.test("upstreamUrl: credentials are hidden in right and in wrong URLs", () => {
  const hidden: Readonly<Record<string, string>> = {
    "https://u:p@a.example/b": "https://(hidden)@a.example/b",
    "https://token@a.example": "https://(hidden)@a.example",
    "https://u:p/q@a.example": "https://(hidden)@a.example",
    "u:p@a.example": "(hidden)@a.example",
    "ftp://u:p@a.example": "ftp://(hidden)@a.example",
    "https://a.example/b@c": "https://a.example/b@c",
    "https://a.example": "https://a.example",
  };
  for (const [given, shown] of Object.entries(hidden)) {
    assert.equal(upstreamUrl.redact?.(given), shown, given);
  }
});

Deno.test("databaseUrl: credentials are hidden, and the path of a file is not", () => {
  const hidden: Readonly<Record<string, string>> = {
    "postgres://u:pw@h/x": "postgres://(hidden)@h/x",
    "u:pw@h/x": "(hidden)@h/x",
    "http://u:pw@h/x": "http://(hidden)@h/x",
    "sqlite:/a@b?c": "sqlite:/a@b?c",
  };
  for (const [given, shown] of Object.entries(hidden)) {
    assert.equal(databaseUrl.redact?.(given), shown, given);
  }
});

checkProperty(
  "size: reading undoes printing for any number of bytes",
  fc.property(fc.maxSafeNat(), (bytes) => {
    assert.equal(size.parse(size.print(bytes)), bytes);
  }),
);

checkProperty(
  "duration: reading undoes printing for any length of time",
  fc.property(fc.integer({ min: 1, max: DURATION_MS_MAX }), (ms) => {
    assert.equal(duration.parse(duration.print(ms)), ms);
  }),
);

checkProperty(
  "retention: reading undoes printing for any time of a day or more",
  fc.property(fc.integer({ min: D, max: 36_500 * D }), (ms) => {
    assert.equal(retention.parse(retention.print(ms)), ms);
  }),
);

checkProperty(
  "kinds: no text makes a kind fail in any other way than by a plain error",
  fc.property(fc.string({ unit: "binary" }), (given) => {
    for (const { kind } of Object.values(SAMPLES)) {
      try {
        kind.parse(given);
      } catch (error) {
        assert.equal(error instanceof Error && error.constructor, Error);
      }
    }
  }),
);

Deno.test("schedule: cron expressions and nicknames are read, anything else is refused", () => {
  for (const text of ["0 3 * * *", "*/5 * * * 1-5", "@daily", "@every 1h30m", "@every 90s"]) {
    assert.equal(schedule.print(schedule.parse(text)), text);
  }
  const refused = ["", "daily", "61 * * * *", "* * *", "@reboot", "CRON_TZ=UTC 0 3 * * *"];
  for (const text of refused) {
    assert.throws(() => schedule.parse(text), /a cron schedule such as/);
  }
  assert.throws(() => schedule.parse("@every day"), /a duration such as/);
});

Deno.test("time zone: IANA names and Local are read, anything else is refused", () => {
  for (const text of ["UTC", "Europe/Berlin", "Local"]) assert.equal(timeZone.parse(text), text);
  for (const text of ["", "Berlin", "Mars/Olympus"]) {
    assert.throws(() => timeZone.parse(text), /a time zone such as UTC/);
  }
});
