export const GET = "GET /healthz HTTP/1.1\r\n";
export const POST = "POST /pin/x.narinfo HTTP/1.1\r\nHost: x\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";
export const BEHIND = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

/** Requests that two servers could read differently, and texts that are no HTTP at all. */
export const REFUSED: Readonly<Record<string, readonly [request: string, status: number]>> = {
  "garbage": ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400],
  "garbage with lines": ["hello\r\nthere\r\n\r\n", 400],
  "another protocol": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  "HTTP/0.9": ["GET /healthz\r\n\r\n", 400],
  "a bare line feed in front": [`\n${GET}Host: x\r\n\r\n`, 400],
  "a bare carriage return in front": [`\r${GET}Host: x\r\n\r\n`, 400],
  "many empty lines in front": [`${"\r\n".repeat(20)}${GET}Host: x\r\n\r\n`, 400],
  "a blank in front": [` ${GET}Host: x\r\n\r\n`, 400],
  "two blanks in the request line": ["GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "no path": ["GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "an authority": ["CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "NUL in the path": ["GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  "no host": [`${GET}\r\n`, 400],
  "two hosts": [`${GET}Host: x\r\nHost: y\r\n\r\n`, 400],
  "a host with a path": [`${GET}Host: x/y\r\n\r\n`, 400],
  "a blank before the colon": [`${GET}Host : x\r\n\r\n`, 400],
  "a fold": [`${GET}Host: x\r\nA: b\r\n c\r\n\r\n`, 400],
  "a fold in front": [`${GET} Host: x\r\n\r\n`, 400],
  "a header without a colon": [`${GET}Host: x\r\nA\r\n\r\n`, 400],
  "a header without a name": [`${GET}Host: x\r\n: a\r\n\r\n`, 400],
  "a bare line feed": ["GET /healthz HTTP/1.1\nHost: x\n\n", 400],
  "a bare line feed between headers": [`${GET}Host: x\nA: b\r\n\r\n`, 400],
  "a bare carriage return": [`${GET}Host: x\rA: b\r\n\r\n`, 400],
  "NUL in a value": [`${GET}Host: x\r\nA: b\0c\r\n\r\n`, 400],
  "two lengths": [`${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400],
  "the same length twice": [`${POST}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`, 400],
  "a list of lengths": [`${POST}Content-Length: 1, 1\r\n\r\na`, 400],
  "a length with a sign": [`${POST}Content-Length: +1\r\n\r\na`, 400],
  "a negative length": [`${POST}Content-Length: -1\r\n\r\na`, 400],
  "a length in hexadecimal": [`${POST}Content-Length: 0x1\r\n\r\na`, 400],
  "a length beyond numbers": [`${POST}Content-Length: 99999999999999999999\r\n\r\na`, 413],
  "a length behind an odd blank": [`${POST}Content-Length: \xa01\r\n\r\na`, 400],
  "length and chunks": [
    `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "an unknown coding": [`${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
  "chunks twice": [
    `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "an almost known coding": [`${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  "a coding with a letter that folds to ASCII": [
    `${POST}Transfer-Encoding: chun\xe2\x84\xaaed\r\n\r\n0\r\n\r\n`,
    400,
  ],
  "chunks of an old client": [
    "POST /pins HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  "a body for GET": [`${GET}Host: x\r\nContent-Length: 5\r\n\r\nhello`, 400],
  "chunks for GET": [`${GET}Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  "an unknown expectation": [`${POST}Expect: 200-ok\r\nContent-Length: 1\r\n\r\na`, 417],
  ...published(),
  "a huge path": [`GET /${"x".repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
  "a huge header": [`${GET}Host: x\r\nA: ${"x".repeat(40_000)}\r\n\r\n`, 431],
  "many headers": [`${GET}Host: x\r\n${"A: b\r\n".repeat(200)}\r\n`, 431],
};

/** Bodies that nobody reads, and that are none. */
export const BROKEN_BODIES: Readonly<Record<string, string>> = {
  "a chunk without a size": `${POST}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
  "a chunk of a negative size": `${POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n`,
  "a chunk longer than it says": `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n`,
  "chunks with bare line feeds": `${POST}Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n`,
  "a chunk with a blank behind its size": `${POST}${CHUNKED}1 \r\na\r\n0\r\n\r\n`,
  "a request line for a trailer": `${POST}${CHUNKED}0\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n`,
  "a trailer with a bare carriage return": `${POST}${CHUNKED}0\r\nA: b\rC: d\r\n\r\n`,
  "a trailer with NUL": `${POST}${CHUNKED}0\r\nA: b\0c\r\n\r\n`,
  "a trailer with a fold": `${POST}${CHUNKED}0\r\nA: b\r\n c\r\n\r\n`,
  "a trailer with a blank before the colon": `${POST}${CHUNKED}0\r\nA : b\r\n\r\n`,
  "a trailer behind a bare line feed": `${POST}${CHUNKED}0\nA: b\r\n\r\n`,
  "a long line of a chunk": `${POST}Transfer-Encoding: chunked\r\n\r\n1;${
    "x".repeat(2_000)
  }\r\na\r\n`,
};

/** Messages that servers and proxies were known to read in two ways. */
function published(): typeof REFUSED {
  const chunked = (name: string, value = "chunked") =>
    `${POST}${name}: ${value}\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`;
  const length = (value: string) => `${POST}Content-Length: ${value}\r\n\r\na`;
  return {
    // RFC 9112, 6.1 and 6.3: never both, and `chunked` comes last and once.
    "chunks in front of another coding": [chunked("Transfer-Encoding", "chunked, identity"), 400],
    "chunks behind an empty coding": [chunked("Transfer-Encoding", ", chunked"), 400],
    "chunks in quotes": [chunked("Transfer-Encoding", '"chunked"'), 400],
    "chunks with a parameter": [chunked("Transfer-Encoding", "chunked;q=1"), 400],
    "chunks behind a vertical tab (Waitress, 2019)": [
      chunked("Transfer-Encoding", "\x0bchunked"),
      400,
    ],
    "chunks behind a form feed": [chunked("Transfer-Encoding", "\x0cchunked"), 400],
    "a tab before the colon (Node.js, 2022)": [chunked("Transfer-Encoding\t"), 400],
    "a carriage return in a name": [chunked("X: y\rTransfer-Encoding"), 400],
    // RFC 9110, 8.6: digits alone.
    "a length with an underscore (Puma, Tornado)": [length("1_0"), 400],
    "a length with a plus (HAProxy, Go)": [length("+1"), 400],
    "an empty length (HAProxy, 2023)": [length(""), 400],
    "a length in Arabic digits": [length("\xd9\xa1"), 400],
    "a length with a fraction": [length("1.0"), 400],
    "a length with an exponent": [length("1e0"), 400],
    "a length behind a comma": [length(",1"), 400],
    // RFC 9112, 2.2 and 5.1: CRLF alone ends a line, and no blank stands before a colon.
    "a bare carriage return behind the request line": [
      "GET /healthz HTTP/1.1\rHost: x\r\n\r\n",
      400,
    ],
    "two carriage returns": ["GET /healthz HTTP/1.1\r\r\nHost: x\r\n\r\n", 400],
    "a header name beyond ASCII": [`${GET}Host: x\r\n\xe9: a\r\n\r\n`, 400],
    "a header name with a slash": [`${GET}Host: x\r\na/b: c\r\n\r\n`, 400],
    // RFC 9112, 3 and 3.2: one target, one host.
    "a tab in the request line": ["GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    "text behind the version": ["GET /healthz HTTP/1.1 x\r\nHost: x\r\n\r\n", 400],
    "a version with two digits": ["GET /healthz HTTP/1.10\r\nHost: x\r\n\r\n", 400],
    "a backslash for the path": ["GET \\healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    "another scheme": ["GET ftp://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    "a list of hosts": [`${GET}Host: x, y\r\n\r\n`, 400],
    "a host with a user": [`${GET}Host: u@x\r\n\r\n`, 400],
  };
}
