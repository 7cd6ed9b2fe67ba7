import assert from "node:assert/strict";
import { parse, parseAllDocuments } from "yaml";
import { OPTIONS } from "../../src/config/options.ts";
import { testUnless } from "../support/program.ts";

const DEPLOY = new URL("../../deploy", import.meta.url).pathname;
const CHART = `${DEPLOY}/helm/larder`;
const SEVERAL = ["--values", `${DEPLOY}/helm/values/several.yaml`];
const GUARDED = ["--values", `${DEPLOY}/helm/values/guarded.yaml`];

const HELM_MISSING = hasHelm()
  ? ""
  : "helm is not installed (go install helm.sh/helm/v3/cmd/helm@latest)";

Deno.test("helm chart: kubernetes.yaml is of these sources", async () => {
  const manifest = Deno.readTextFileSync(`${DEPLOY}/several-machines/kubernetes.yaml`);
  // These values render no alerts, so a change of those changes nothing.
  const files = [...filesBelow("helm/larder"), "helm/values/several.yaml"].sort()
    .filter((file) => !file.endsWith("/alerts.yml"));
  const content = files.map((file) => Deno.readTextFileSync(`${DEPLOY}/${file}`)).join("");
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content));
  assert.match(
    manifest,
    new RegExp(`^# SHA-256 of both: ${new Uint8Array(digest).toHex()}$`, "m"),
    "run scripts/check_chart --write",
  );
});

Deno.test("helm chart: the values in the document are those of kubernetes.yaml", () => {
  const values = Deno.readTextFileSync(`${DEPLOY}/helm/values/several.yaml`);
  const page = Deno.readTextFileSync(`${DEPLOY}/../docs/several-machines.md`);
  assert.ok(page.includes(`\`\`\`yaml\n${values.slice(values.indexOf("\n") + 1)}\`\`\`\n`));
});

Deno.test("helm chart: the alerts name the job of any release", () => {
  const monitor = Deno.readTextFileSync(`${CHART}/templates/monitor.yaml`);
  const [, label] = /^ {2}jobLabel: (\S+)$/m.exec(monitor) ?? [];
  const names = Deno.readTextFileSync(`${CHART}/templates/_names.tpl`);
  const labels = names.split('define "larder.selector" -}}\n')[1]?.split("{{- end }}")[0] ?? "";
  assert.deepEqual(
    alertedJobs(Deno.readTextFileSync(`${CHART}/alerts.yml`)),
    labels.split("\n").filter((line) => line.startsWith(`${label}: `))
      .map((line) => line.slice(`${label}: `.length)),
  );
});

Deno.test("helm chart: each option with a secret can come from a Secret, and no other way", () => {
  const { properties } = JSON.parse(Deno.readTextFileSync(`${CHART}/values.schema.json`));
  const names = Deno.readTextFileSync(`${CHART}/templates/_names.tpl`);
  const listed = (name: string) => (
    names.split(`define "larder.${name}" -}}\n`)[1]?.split("\n")[0]?.split(" ") ?? []
  );
  const secret = Object.entries(OPTIONS)
    .filter(([, option]) => "secret" in option && option.secret)
    .map(([key]) => key.replaceAll(".", "-"));

  assert.deepEqual(listed("secretOptions"), secret.toSorted());
  assert.deepEqual(
    Object.keys(properties.secrets.properties),
    [...secret, ...listed("pathOptions")].sort(),
  );
  const flags = Object.keys(OPTIONS).map((key) => key.replaceAll(".", "-"));
  for (const option of listed("pathOptions")) assert.ok(flags.includes(option), option);
});

const REFUSED: Readonly<Record<string, readonly [readonly string[], RegExp]>> = {
  "the name that other charts have for replicas": [
    set("replicaCount=3"),
    /replicaCount=3 was given, which this chart does not have: give replicas=3/,
  ],
  "several larders without servers": [
    set("replicas=3"),
    /replicas=3 was given without postgres\.url, s3\.bucket, redis\.addrs: several larders need/,
  ],
  "several larders with some of the servers": [
    set("replicas=2", "postgres.url=postgres://a@b/c"),
    /replicas=2 was given without s3\.bucket, redis\.addrs: several larders need/,
  ],
  "one larder with some of the servers": [
    set("s3.bucket=nars"),
    /replicas=1 was given without postgres\.url, redis\.addrs: .* one larder on a volume needs/,
  ],
  "a volume beside a bucket": [
    [...SEVERAL, ...set("persistence.existingClaim=mine")],
    /existingClaim=mine was given beside s3\.bucket=larder: larders that share a bucket have no vol/,
  ],
  "a bucket without a limit": [
    [...SEVERAL, ...set("settings.cache.max-size=null")],
    /given without settings\.cache\.max-size, or with auto: .* give a size such as 500G, or unlimited/,
  ],
  "a bucket with a limit that a disk has": [
    [...SEVERAL, ...set("settings.cache.max-size=auto")],
    /given without settings\.cache\.max-size, or with auto: .* give a size such as 500G, or unlimited/,
  ],
  "an option that larder does not have": [
    set("settings.cache.max-siez=10G"),
    /at '\/settings\/cache': additional properties 'max-siez' not allowed/,
  ],
  "a table of options that larder does not have": [
    set("settings.cash.max-size=10G"),
    /at '\/settings': additional properties 'cash' not allowed/,
  ],
  "a limit that the volume cannot hold": [
    set("settings.cache.max-size=900G", "persistence.size=500Gi"),
    /max-size=900G was given with persistence\.size=500Gi: the volume would be full first; give less/,
  ],
  "a limit that a volume of decimal units cannot hold": [
    set("settings.cache.max-size=99GiB", "persistence.size=100G"),
    /max-size=99GiB was given with persistence\.size=100G: the volume would be full first/,
  ],
  "a drain of nodes that may stop all": [
    [...SEVERAL, ...set("podDisruptionBudget.maxUnavailable=3")],
    /maxUnavailable=3 was given with replicas=3: a drain of nodes could stop all at once; give less/,
  ],
  "an option that a value of the chart has, too": [
    [...SEVERAL, ...set("settings.cache.database-url=postgres://x@y/z")],
    /settings\.cache\.database-url was given, but the chart gives this option by other values/,
  ],
  "a token in the settings": [
    set("settings.cache.admin-token=abc"),
    /settings\.cache\.admin-token was given as plain text.*: give secrets\.cache-admin-token the/,
  ],
  "a password in the settings, in the spelling of ncps": [
    set("settings.cache.redis.password=abc"),
    /settings\.cache\.redis\.password was given as plain text.*secrets\.cache-redis-password/,
  ],
  "a password in the URL of the database": [
    [...SEVERAL, ...set("postgres.url=postgres://a:pw@b/c")],
    /postgres\.url was given with a password in its URL/,
  ],
  "a password in the URL of an upstream": [
    set("settings.cache.upstream-url[0]=https://me:pw@host"),
    /settings\.cache\.upstream-url\[\] was given with a password in its URL/,
  ],
  "a monitor without figures": [
    set("serviceMonitor.enabled=true", "settings.prometheus.enabled=false"),
    /serviceMonitor\.enabled=true was given, but settings\.prometheus\.enabled is not true/,
  ],
  "a monitor without the token that reading needs": [
    [...GUARDED, ...set("serviceMonitor.tokenSecret.name=", "serviceMonitor.tokenSecret.key=")],
    /secrets\.cache-get-token, but without serviceMonitor\.tokenSecret: reading needs a token/,
  ],
  "alerts without figures": [
    set("prometheusRule.enabled=true", "settings.prometheus.enabled=false"),
    /prometheusRule\.enabled=true was given, but settings\.prometheus\.enabled is not true/,
  ],
  "an ingress that larder would take for its client": [
    set("ingress.enabled=true"),
    /without settings\.server\.trusted-proxies: .* addresses of the ingress's pods, such as/,
  ],
  "a policy for clients from outside where none come": [
    set("service.externalTrafficPolicy=Local"),
    /externalTrafficPolicy=Local was given, which service\.type=ClusterIP does not have/,
  ],
  "a certificate without its key": [
    set("secrets.server-tls-cert.name=tls", "secrets.server-tls-cert.key=tls.crt"),
    /secrets\.server-tls-cert was given without secrets\.server-tls-key/,
  ],
  "an unknown value": [set("nonsense=1"), /additional properties 'nonsense' not allowed/],
  "an unknown value in a section": [
    set("service.prot=1"),
    /additional properties 'prot' not allow/,
  ],
  "an unknown secret": [
    set("secrets.cache-kye.name=a", "secrets.cache-kye.key=b"),
    /additional properties 'cache-kye' not allowed/,
  ],
  "a secret without its key": [
    set("secrets.cache-get-token.name=a"),
    /cache-get-token': missing property 'key'/,
  ],
  "a number that is none": [set("replicas=two"), /'\/replicas': got string, want integer/],
  "less than no larder": [set("replicas=-1"), /'\/replicas': minimum: got -1, want 0/],
  "a port that is none": [set("service.port=0"), /'\/service\/port': minimum: got 0, want 1/],
  "a size that is none": [set("persistence.size=much"), /'much' does not match pattern/],
  "a section that is taken away": [set("ingress=null"), /missing property 'ingress'/],
};

for (const [what, [args, sentence]] of Object.entries(REFUSED)) {
  testUnless(HELM_MISSING, `helm chart: it refuses ${what}, and says what it expects`, () => {
    const { success, error } = template(args);
    assert.ok(!success);
    assert.match(error, sentence);
  });
}

testUnless(
  HELM_MISSING,
  "helm chart: it takes a limit below the volume, and each option's names",
  () => {
    rendered(set("settings.cache.max-size=400G", "persistence.size=500Gi"));
    rendered(set("settings.cache.max-size=unlimited", "settings.log-level=debug"));
    rendered(
      set("settings.cache.lru.schedule=0 3 * * *", "settings.cache.upstream.urls[0]=https://a"),
    );
    rendered([...SEVERAL, ...set("podDisruptionBudget.maxUnavailable=2")]);
  },
);

testUnless(HELM_MISSING, "helm chart: one larder has a volume, and no part of several", () => {
  const objects = rendered([]);
  assert.deepEqual(Object.keys(objects).sort(), [
    "ConfigMap larder",
    "Deployment larder",
    "PersistentVolumeClaim larder",
    "Service larder",
  ]);
  const { spec } = objects["Deployment larder"];
  assert.equal(spec.replicas, 1);
  // A random name would make each restart another member.
  assert.equal(spec.template.spec.hostname, "larder");
  assert.deepEqual(spec.strategy, { type: "Recreate" });
  assert.deepEqual(spec.template.spec.volumes[0].persistentVolumeClaim, { claimName: "larder" });
});

testUnless(HELM_MISSING, "helm chart: several larders have all that guards them", () => {
  const objects = rendered(GUARDED);
  assert.deepEqual(Object.keys(objects).sort(), [
    "ConfigMap larder",
    "NetworkPolicy larder",
    "PodDisruptionBudget larder",
    "PrometheusRule larder",
    "Service larder",
    "Service larder-members",
    "ServiceMonitor larder",
    "StatefulSet larder",
  ]);
  const { spec } = objects["StatefulSet larder"];
  const labels = spec.selector.matchLabels;
  assert.equal(spec.replicas, 2);
  assert.equal(spec.serviceName, "larder-members");
  const pod = spec.template.spec;
  assert.deepEqual(pod.topologySpreadConstraints, [{
    topologyKey: "topology.kubernetes.io/zone",
    maxSkew: 1,
    whenUnsatisfiable: "DoNotSchedule",
    labelSelector: { matchLabels: labels },
  }]);
  assert.equal(pod.serviceAccountName, "larder-s3");
  assert.deepEqual(pod.containers[0].resources.limits, { memory: "1Gi" });
  assert.deepEqual(objects["PodDisruptionBudget larder"].spec, {
    maxUnavailable: 1,
    selector: { matchLabels: labels },
  });
  assert.deepEqual(objects["NetworkPolicy larder"].spec, {
    podSelector: { matchLabels: labels },
    policyTypes: ["Ingress", "Egress"],
    ingress: [{
      ports: [{ protocol: "TCP", port: "http" }],
      from: [
        { podSelector: { matchLabels: labels } },
        { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress" } } },
      ],
    }],
    egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }],
  });
  const monitor = objects["ServiceMonitor larder"];
  assert.equal(monitor.metadata.labels.release, "prometheus");
  const chosen = Object.entries(monitor.spec.selector.matchLabels);
  const has = (name: string) => (
    chosen.every(([key, value]) => objects[name].metadata.labels[key] === value)
  );
  assert.ok(has("Service larder"));
  assert.ok(!has("Service larder-members"), "each pod is scraped once");
  const [endpoint] = monitor.spec.endpoints;
  assert.equal(endpoint.scheme, "https");
  assert.deepEqual(endpoint.authorization.credentials, { name: "prometheus", key: "larder-token" });
});

testUnless(HELM_MISSING, "helm chart: under another name Prometheus gives the alerts' job", () => {
  const objects = rendered(GUARDED, "caches");
  const { spec: { jobLabel, selector } } = objects["ServiceMonitor caches-larder"];
  const services = Object.values(objects).filter(({ kind, metadata: { labels } }) => (
    kind === "Service" &&
    Object.entries(selector.matchLabels).every(([key, value]) => labels[key] === value)
  ));
  const jobs = services.map(({ metadata }) => metadata.labels[jobLabel]);
  const rule = objects["PrometheusRule caches-larder"];
  assert.deepEqual(alertedJobs(JSON.stringify(rule.spec).replaceAll('\\"', '"')), jobs);
  assert.deepEqual(
    rule.spec,
    parse(Deno.readTextFileSync(`${DEPLOY}/../docs/prometheus/alerts.yml`)),
  );
  assert.equal(rule.metadata.labels.release, "prometheus");
});

testUnless(HELM_MISSING, "helm chart: an ingress names larder for browsers, and is trusted", () => {
  const objects = rendered(["--values", `${DEPLOY}/helm/values/ingress.yaml`]);
  const [{ args, env }] = objects["Deployment larder"].spec.template.spec.containers;
  assert.ok(args.includes("--cache-hostname=cache.example.org"));
  assert.deepEqual(env, [
    { name: "SERVER_ALLOWED_HOSTS", value: "cache.example.org,cache.example.com" },
  ]);
  const { server } = parse(objects["ConfigMap larder"].data["config.yaml"]);
  assert.deepEqual(server["trusted-proxies"], ["10.244.0.0/16"]);
});

testUnless(HELM_MISSING, "helm chart: a change of the configuration file restarts the pods", () => {
  const templateOf = (...values: readonly string[]) => {
    const objects = rendered(set(...values));
    const { data } = objects["ConfigMap larder"];
    return { data, pod: objects["Deployment larder"].spec.template };
  };
  const one = templateOf("settings.cache.priority=10");
  const other = templateOf("settings.cache.priority=20");
  assert.notDeepEqual(one.data, other.data);
  assert.notDeepEqual(one.pod, other.pod);
  assert.deepEqual(one.pod, templateOf("settings.cache.priority=10").pod);
});

testUnless(HELM_MISSING, "helm chart: with no replicas all stop, and nothing else changes", () => {
  const before = rendered(SEVERAL);
  const stopped = rendered([...SEVERAL, ...set("replicas=0")]);
  assert.equal(stopped["StatefulSet larder"].spec.replicas, 0);
  const gone = Object.keys(before).filter((name) => !(name in stopped));
  assert.deepEqual(gone, ["PodDisruptionBudget larder"]);
});

testUnless(
  HELM_MISSING,
  "helm chart: secrets are files that arguments name",
  () => {
    const { spec: { template: { spec: pod } } } = rendered(GUARDED)["StatefulSet larder"];
    const [{ args }] = pod.containers;
    for (const word of ["--cache-redis-password-file=", "--server-tls-cert="]) {
      const given = args.find((arg: string) => arg.startsWith(word));
      assert.equal(given, `${word}/run/larder/${word.slice(2, -1).replace(/-file$/, "")}`);
    }
    const { projected } = pod.volumes.find(({ name }: { name: string }) => name === "options");
    assert.deepEqual(projected.sources[1], {
      secret: { name: "redis", items: [{ key: "password", path: "cache-redis-password" }] },
    });
  },
);

testUnless(HELM_MISSING, "helm chart: each probe uses HTTPS where larder does", () => {
  const { spec: { template: { spec: pod } } } = rendered(
    set("settings.server.tls-cert=/secrets/cert"),
  )["Deployment larder"];
  const [{ startupProbe, readinessProbe, livenessProbe }] = pod.containers;
  for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe]) {
    assert.equal(httpGet.scheme, "HTTPS");
  }
});

testUnless(HELM_MISSING, "helm chart: kubernetes.yaml is what it renders", () => {
  const manifest = Deno.readTextFileSync(`${DEPLOY}/several-machines/kubernetes.yaml`);
  // Helm 4 parts the objects with empty lines.
  const written = template(SEVERAL).output.replaceAll(/^\n/gm, "");
  assert.equal(manifest.slice(manifest.indexOf("---\n")), written);
});

/** The jobs that expressions of alerts name. */
function alertedJobs(alerts: string): readonly string[] {
  return [...new Set(Array.from(alerts.matchAll(/\bjob="([^"]*)"/g), ([, job = ""]) => job))];
}

function set(...values: readonly string[]): readonly string[] {
  return values.flatMap((value) => ["--set", value]);
}

// deno-lint-ignore no-explicit-any -- the objects of Kubernetes, read by the assertions
function rendered(args: readonly string[], release?: string): Readonly<Record<string, any>> {
  const { success, output, error } = template(args, release);
  assert.ok(success, error);
  const objects = parseAllDocuments(output).map((one) => one.toJS());
  return Object.fromEntries(objects.map((one) => [`${one.kind} ${one.metadata.name}`, one]));
}

function template(args: readonly string[], release = "larder") {
  const { success, stdout, stderr } = new Deno.Command("helm", {
    args: ["template", release, CHART, ...args],
  }).outputSync();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout), error: decoder.decode(stderr) };
}

function hasHelm(): boolean {
  try {
    return new Deno.Command("helm", { args: ["version"], stdout: "null", stderr: "null" })
      .outputSync().success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

function filesBelow(folder: string): readonly string[] {
  return [...Deno.readDirSync(`${DEPLOY}/${folder}`)].flatMap(({ name, isDirectory }) => (
    isDirectory ? filesBelow(`${folder}/${name}`) : [`${folder}/${name}`]
  ));
}
