import fc from "fast-check";

/** The bytes of a client on one connection, byte for character, and the possible answers. */
export interface Conversation {
  readonly text: string;
  /** Of the requests that must be answered, in this order. */
  readonly expected: readonly Expected[];
  /** How many further answers there may be. */
  readonly othersMax: number;
  /** True where the connection must take another request after these. */
  readonly staysOpen: boolean;
}

export interface Expected {
  readonly id: string;
  readonly isHead: boolean;
}

/** No request with such an id may be routed: it lies where no request can begin. */
export const EVIL_ID = "evil";
export const EVIL = `GET /nix-cache-info HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${EVIL_ID}\r\n\r\n`;

export const pick = <T>(...items: readonly T[]) => fc.constantFrom(...items);

const token = fc.string({
  unit: pick(..."!#$%&'*+-.^_`|~09AZaz"),
  minLength: 1,
  maxLength: 10,
});
const fieldValue = fc.string({ unit: pick(...'!~ \tAz09;,="\xe9\xff'), maxLength: 20 });
const blanks = pick("", " ", "\t", " \t ");

/** Letters of any case. */
const cased = (name: string) =>
  fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length }).map((upper) =>
    [...name].map((letter, at) => upper[at] ? letter.toUpperCase() : letter.toLowerCase()).join("")
  );

/** A header field, its name in any case, with any blanks around its value. */
export const field = (name: string, value: string) =>
  fc.tuple(cased(name), blanks, blanks).map(([cases, before, after]) =>
    `${cases}:${before}${value}${after}\r\n`
  );
export const otherFields = fc.array(fc.tuple(token, fieldValue), { maxLength: 4 })
  .map((fields) => fields.map(([name, value]) => `x-${name}: ${value}\r\n`).join(""));

const target = fc.oneof(
  pick("/healthz", "/nix-cache-info", "/pins", "/nowhere?a=/b", "/", "/../etc", "http://a/healthz"),
  pick(`/${"0".repeat(32)}.narinfo`, `/nar/${"0".repeat(52)}.nar.xz`, "/%2e%2e/%zz", "/stats"),
  fc.string({ unit: pick(..."/.%2eazAZ09?#[]@:~"), maxLength: 30 }).map((rest) => `/${rest}`),
);

const bytes = fc.string({
  unit: pick("a", "0", "\r\n", "\0", "\xff", "GET / HTTP/1.1"),
  maxLength: 9,
});
const extension = pick("", ";a=b", ' ; a="b c"', ";");
const chunk = fc.tuple(bytes, extension).map(([data, more]) =>
  data === "" ? "" : `${data.length.toString(16)}${more}\r\n${data}\r\n`
);
export const trailers = pick("", "A: b\r\n", "A: b\r\nX-c:\r\n");
const chunkedBody = fc.tuple(fc.array(chunk, { maxLength: 3 }), trailers)
  .map(([chunks, fields]) => `${chunks.join("")}0\r\n${fields}\r\n`);

/** A body with the field that frames it, and methods that may have one. */
const framedBody = fc.oneof(
  fc.record({ frame: pick(""), body: pick(""), method: pick("GET", "HEAD", "BREW", "DELETE") }),
  bytes.chain((body) =>
    fc.record({
      frame: field("Content-Length", `${body.length}`),
      body: pick(body),
      method: pick("POST", "PUT", "BREW"),
    })
  ),
  fc.record({
    frame: field("Transfer-Encoding", "chunked"),
    body: chunkedBody,
    method: pick("POST", "PUT", "BREW"),
  }),
);

interface Request {
  readonly isHead: boolean;
  readonly closes: boolean;
  readonly textOf: (id: string) => string;
}

const request: fc.Arbitrary<Request> = fc.record({
  front: pick("", "", "", "\r\n"),
  framed: framedBody,
  path: target,
  host: field("Host", "a.example:80"),
  others: otherFields,
  closes: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
}).map(({ front, framed: { frame, body, method }, path, host, others, closes }) => ({
  isHead: method === "HEAD",
  closes,
  textOf: (id) =>
    `${front}${method} ${path} HTTP/1.1\r\n${others}${host}X-Request-Id: ${id}\r\n${frame}` +
    `${closes ? "Connection: close\r\n" : ""}\r\n${body}`,
}));

/** Up to four requests for one connection. */
export const requests = fc.array(request, { maxLength: 4 });

/** Requests as the grammar has them, in a row: each is answered up to the first that closes. */
export const wellFormed: fc.Arbitrary<Conversation> = requests.map((list) => {
  const last = list.findIndex(({ closes }) => closes);
  const answered = last < 0 ? list : list.slice(0, last + 1);
  return {
    text: list.map(({ textOf }, at) => textOf(`ok-${at}`)).join(""),
    expected: answered.map(({ isHead }, at) => ({ id: `ok-${at}`, isHead })),
    othersMax: 0,
    staysOpen: last < 0,
  };
});

/** One change of a text: `at` and `length` are of a thousand. */
const change = fc.record({
  at: fc.nat(999),
  length: fc.nat(50),
  put: fc.oneof(
    pick("", "\r\n", "\n", "\r", "\0", " ", ":", "\r\n\r\n", ";", "0", "chunked", "\xff", EVIL),
    fc.string({ unit: "binary", maxLength: 4 }),
  ),
});

/** Requests with bytes lost, changed and put in: they may mean anything. */
export const mutated: fc.Arbitrary<Conversation> = fc.tuple(
  requests.map((list) => list.filter(({ isHead }) => !isHead)),
  fc.array(change, { minLength: 1, maxLength: 5 }),
).map(([list, changes]) => {
  let text = list.map(({ textOf }, at) => textOf(`ok-${at}`)).join("");
  for (const { at, length, put } of changes) {
    const start = Math.floor(text.length * at / 1_000);
    const end = start + Math.floor(text.length * length / 1_000);
    text = text.slice(0, start) + put + text.slice(end);
  }
  return { text, expected: [], othersMax: Infinity, staysOpen: false };
});
