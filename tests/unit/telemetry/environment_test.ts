import assert from "node:assert/strict";
import { metricsEveryMs, resourceOf, samplingOf } from "../../../src/telemetry/otel/environment.ts";
import { isSdkDisabled } from "../../../src/telemetry/otel/sdk_switch.ts";

const SERVICE = { version: "1.2", instanceId: "one" };
const OURS = { "service.name": "larder", "service.version": "1.2", "service.instance.id": "one" };

type ReportInvalid = (variable: string) => void;

/** The value of an environment, and the variables that were not understood. */
function read<Value>(
  environment: Readonly<Record<string, string>>,
  by: (variable: (name: string) => string | undefined, complain: ReportInvalid) => Value,
) {
  const complaints: string[] = [];
  const value = by((name) => environment[name], (variable) => void complaints.push(variable));
  return { value, complaints };
}

function attributesOf(text: string) {
  const environment = { OTEL_RESOURCE_ATTRIBUTES: text };
  return read(environment, (variable, complain) => {
    return resourceOf(variable, SERVICE, complain).attributes;
  });
}

const ATTRIBUTES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "team=a": { team: "a" },
  " team = a , zone=b%20c%2C=d ": { team: "a", zone: "b c,=d" },
  "team=": { team: "" },
  "team=a=b,": { team: "a=b" },
};

for (const [text, expected] of Object.entries(ATTRIBUTES)) {
  Deno.test(`OTEL_RESOURCE_ATTRIBUTES: "${text}" is understood`, () => {
    const { value, complaints } = attributesOf(text);
    assert.deepEqual({ ...value }, { ...OURS, ...expected });
    assert.deepEqual(complaints, []);
  });
}

for (const text of ["abc", "team=a,abc", "=a", "team=a,zone=%zz", "%zz=a"]) {
  Deno.test(`OTEL_RESOURCE_ATTRIBUTES: all of "${text}" is refused`, () => {
    const { value, complaints } = attributesOf(text);
    assert.deepEqual({ ...value }, OURS);
    assert.deepEqual(complaints, ["OTEL_RESOURCE_ATTRIBUTES"]);
  });
}

const INTERVALS: Readonly<Record<string, number | undefined>> = {
  "250": 250,
  " 250 ": 250,
  "0": undefined,
  "-5": undefined,
  "soon": undefined,
  "1m": undefined,
  "Infinity": undefined,
  "99999999999": undefined,
};

for (const [text, expected] of Object.entries(INTERVALS)) {
  const outcome = expected === undefined ? "is refused for a minute" : `is ${expected} ms`;
  Deno.test(`OTEL_METRIC_EXPORT_INTERVAL: "${text}" ${outcome}`, () => {
    const environment = { OTEL_METRIC_EXPORT_INTERVAL: text };
    const { value, complaints } = read(environment, metricsEveryMs);
    assert.equal(value, expected ?? 60_000);
    assert.deepEqual(
      complaints,
      expected === undefined ? ["OTEL_METRIC_EXPORT_INTERVAL"] : [],
    );
  });
}

for (const ratio of ["often", "2", "-1", " ", "NaN"]) {
  Deno.test(`OTEL_TRACES_SAMPLER_ARG: "${ratio}" is refused, and everything is traced`, () => {
    const environment = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: ratio };
    const { value, complaints } = read(environment, samplingOf);
    assert.equal(value.rootRatio, 1);
    assert.deepEqual(complaints, ["OTEL_TRACES_SAMPLER_ARG"]);
  });
}

const SWITCHES: Readonly<Record<string, readonly [disabled: boolean, complaints: number]>> = {
  "true": [true, 0],
  "TRUE": [true, 0],
  "false": [false, 0],
  "1": [false, 1],
  "yes": [false, 1],
};

for (const [text, [disabled, complaints]] of Object.entries(SWITCHES)) {
  Deno.test(`OTEL_SDK_DISABLED: "${text}" ${disabled ? "disables it" : "disables nothing"}`, () => {
    const found = read({ OTEL_SDK_DISABLED: text }, isSdkDisabled);
    assert.deepEqual([found.value, found.complaints.length], [disabled, complaints]);
  });
}
