import fc from "fast-check";
import {
  type Conversation,
  EVIL,
  field,
  otherFields,
  pick,
  requests,
  trailers,
} from "./http_grammar.ts";

const POST = "POST /pins HTTP/1.1\r\nHost: x\r\nX-Request-Id: bad\r\n";
const GET = "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: bad\r\n";
const KELVIN = "\xe2\x84\xaa";
const LONG_S = "\xc5\xbf";

/** Values that some server somewhere takes for `chunked`, and names for Transfer-Encoding. */
const almostChunked = pick(
  ...[
    `chun${KELVIN}ed`,
    "xchunked",
    "chunked, identity",
    "identity, chunked",
    "chunked,",
    '"chunked"',
  ],
  ...["chunked;a=b", "chunked\x0b", "\x0bchunked", "chunked\xa0", "chunkedd", "gzip, chunked", ""],
);
const almostEncoding = pick(
  ...[
    `Tran${LONG_S}fer-Encoding`,
    "Transfer_Encoding",
    "Transfer-Encoding ",
    "Transfer-Encoding\t",
  ],
  ...[
    "X: a\rTransfer-Encoding",
    " Transfer-Encoding",
    "\0Transfer-Encoding",
    "Transfer-Encoding\0",
  ],
);
/** Values that some server takes for five. */
const almostFive = pick(
  ...[
    "+5",
    "-5",
    "0x5",
    "5_",
    "5,5",
    "5, 5",
    "5 5",
    "\xd9\xa5",
    "5\x0b",
    "5;",
    "5e0",
    "5.0",
    "",
    "5\0",
  ],
  ...["\x0b5", "5\xa0", "18446744073709551621", "99999999999999999999", "'5'", "five"],
);
const almostLength = pick(
  ...["Content-Length ", "Content-Length\t", "X: a\rContent-Length", " Content-Length"],
  ...["Content_Length", "\0Content-Length", "Content-Length\0", `Content-Length${KELVIN}`],
);
/** Texts that look like the size of a chunk of five bytes. */
const almostSize = pick(
  ...[
    "0x5",
    "+5",
    "-5",
    " 5",
    "5 ",
    "5\x0b",
    "5_",
    "",
    "5;a=\rb",
    "5;\n",
    "\n5",
    "5\r",
    "g",
    "5,5",
  ],
  ...["0000000000000005", "10000000000000005", "5;\0", "\xd9\xa5", "5;\xff"],
);
const noField = pick(
  ...[
    "GET /evil HTTP/1.1",
    "a: b\rc: d",
    "a: b\0",
    " fold",
    "\tfold",
    ": a",
    "a",
    "a : b",
    "a\t: b",
  ],
  ...["a: b\nc: d", "\x0b: a", "a\xe9: b", "a: b\x7f", "a b: c"],
);
const badRequestLine = pick(
  ...["GET  /healthz HTTP/1.1", "GET /healthz  HTTP/1.1", "GET\t/healthz HTTP/1.1", "GET /healthz"],
  ...[
    "GET /healthz HTTP/1.10",
    "GET /healthz http/1.1",
    "GET /healthz HTTP/2.0",
    "GET /a\0b HTTP/1.1",
  ],
  ...[
    "GET /healthz HTTP/1.1 ",
    " GET /healthz HTTP/1.1",
    "GET healthz HTTP/1.1",
    "G\xe9T / HTTP/1.1",
  ],
  ...[
    "CONNECT x:1 HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "GET /healthz HTTP/1.1\rX: y",
    "\nGET / HTTP/1.1",
  ],
);
const badHost = pick(
  "",
  "Host: a\r\nHost: a\r\n",
  "Host: a/b\r\n",
  "Host: a, b\r\n",
  "Host : a\r\n",
);
const END = `0\r\n\r\n${EVIL}`;

/**
 * A message that servers could frame differently. Behind or inside it waits text that is no
 * request.
 */
const ambiguous: fc.Arbitrary<string> = fc.oneof(
  // The length spans the text that chunks would leave over.
  fc.tuple(almostEncoding, pick("chunked", "CHUNKED")).map(([name, value]) =>
    `${POST}${name}: ${value}\r\nContent-Length: ${END.length}\r\n\r\n${END}`
  ),
  // The chunk spans the text that the length would leave over.
  fc.tuple(almostLength, fc.integer({ min: 0, max: 9 })).map(([name, length]) => {
    const data = `${"x".repeat(length)}${EVIL}`;
    return `${POST}${name}: ${length}\r\nTransfer-Encoding: chunked\r\n\r\n` +
      `${data.length.toString(16)}\r\n${data}\r\n0\r\n\r\n`;
  }),
  fc.tuple(field("Content-Length", "5"), field("Transfer-Encoding", "chunked"), fc.boolean())
    .map(([length, coding, isLast]) =>
      `${POST}${isLast ? length + coding : coding + length}\r\n0\r\n\r\n${EVIL}`
    ),
  almostChunked.map((value) => `${POST}Transfer-Encoding: ${value}\r\n\r\n${END}`),
  almostChunked.map((value) => `${POST}Transfer-Encoding: ${value}\r\n\r\n${EVIL}`),
  pick(2, 3).map((count) => `${POST}${"Transfer-Encoding: chunked\r\n".repeat(count)}\r\n${END}`),
  fc.tuple(field("Content-Length", "5"), pick("5", "6", "0", "05")).map(([first, second]) =>
    `${POST}${first}Content-Length: ${second}\r\n\r\nabcde${EVIL}`
  ),
  almostFive.map((value) => `${POST}Content-Length: ${value}\r\n\r\nabcde${EVIL}`),
  fc.tuple(almostSize, trailers).map(([size, fields]) =>
    `${POST}Transfer-Encoding: chunked\r\n\r\n${size}\r\nabcde\r\n0\r\n${fields}\r\n${EVIL}`
  ),
  fc.tuple(pick(4, 6), pick("\r\n", "\n", "\r", "")).map(([size, end]) =>
    `${POST}Transfer-Encoding: chunked\r\n\r\n${size}\r\nabcde${end}0\r\n\r\n${EVIL}`
  ),
  fc.tuple(trailers, noField, trailers).map(([before, line, after]) =>
    `${POST}Transfer-Encoding: chunked\r\n\r\n0\r\n${before}${line}\r\n${after}\r\n${EVIL}`
  ),
  fc.tuple(noField, otherFields).map(([line, others]) => `${GET}${others}${line}\r\n\r\n${EVIL}`),
  badRequestLine.map((line) => `${line}\r\nHost: x\r\n\r\n${EVIL}`),
  badHost.map((host) => `GET /healthz HTTP/1.1\r\n${host}\r\n${EVIL}`),
  pick("Content-Length: 5", "Transfer-Encoding: chunked").map((framing) =>
    `${GET}${framing}\r\n\r\n${EVIL}`
  ),
  pick(`POST /pins HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n${END}`),
  pick(`${POST}Expect: 200-ok\r\nContent-Length: 5\r\n\r\nabcde${EVIL}`),
  fc.tuple(pick("\n", "\r", "\r\r\n", "\n\r"), field("Content-Length", "0")).map(([end, length]) =>
    `POST /pins HTTP/1.1${end}Host: x\r\n${length}\r\n${EVIL}`
  ),
);

/** Requests, and then a message that can be framed in two ways: it has one answer at most. */
export const smuggling: fc.Arbitrary<Conversation> = fc.tuple(
  requests.map((list) => list.filter(({ closes }) => !closes)),
  ambiguous,
).map(([list, message]) => ({
  text: list.map(({ textOf }, at) => textOf(`ok-${at}`)).join("") + message,
  expected: list.map(({ isHead }, at) => ({ id: `ok-${at}`, isHead })),
  othersMax: 1,
  staysOpen: false,
}));
