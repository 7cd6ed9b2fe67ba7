import type { S3Client } from "@aws-sdk/client-s3";
import { streamFrom } from "../../base/stream_of.ts";
import {
  beginSpan,
  type OpenSpan,
  type Span,
  type SpanFacts,
  type SpanStart,
  type Tracer,
} from "../../telemetry/tracer.ts";
import type { S3Access } from "./s3_access.ts";
import { isNotFound } from "./s3_failures.ts";
import type { Bytes } from "../../base/bytes.ts";

interface S3Command {
  readonly constructor: { readonly name: string };
  readonly input: Readonly<Record<string, unknown>>;
}

interface S3Output {
  readonly $metadata: { readonly httpStatusCode?: number; readonly requestId?: string };
  readonly Body?: S3Body;
}

/** A body of the SDK, which is a stream with these methods on top. */
interface S3Body {
  transformToWebStream(): ReadableStream<Bytes>;
  transformToString(encoding?: string): Promise<string>;
}

interface SendOptions {
  readonly abortSignal?: AbortSignal;
}

type SendRequest = (command: S3Command, options?: SendOptions) => Promise<S3Output>;

/**
 * Adds a span to each operation that a traced request sends with this client. The span of an object
 * lasts until its body ends.
 */
export function traceS3({ client, bucket }: S3Access, tracer: Tracer): void {
  const send = client.send.bind(client) as unknown as SendRequest;
  const traced: SendRequest = (command, options) => {
    if (tracer.ids() === undefined) return send(command, options);
    return sendTraced(beginSpan(tracer, operationSpan(command, bucket)), command, options);
  };
  const sendTraced = async (span: OpenSpan, command: S3Command, options?: SendOptions) => {
    try {
      const output = await span.run(() => send(command, options));
      noteAnswer(span, output);
      if (output.Body === undefined) span.end();
      else endWithBody(span, output.Body);
      return output;
    } catch (error) {
      endFailed(span, error, options?.abortSignal);
      throw error;
    }
  };
  client.send = traced as unknown as S3Client["send"];
}

/** The span of a presigned URL, which is made without a request. */
export function presignSpan(bucket: string): SpanStart {
  return { name: "presign S3/GetObject", facts: operationFacts("GetObject", bucket) };
}

/** The name and the attributes of OpenTelemetry's conventions for AWS. */
function operationSpan({ constructor: { name }, input }: S3Command, bucket: string): SpanStart {
  const method = name.replace(/Command$/, "");
  const { Key: key, UploadId: uploadId, PartNumber: part } = input;
  const facts = {
    ...operationFacts(method, bucket),
    ...(typeof key === "string" ? { "aws.s3.key": key } : {}),
    ...(typeof uploadId === "string" ? { "aws.s3.upload_id": uploadId } : {}),
    ...(typeof part === "number" ? { "aws.s3.part_number": part } : {}),
  };
  return { name: `S3/${method}`, kind: "client", facts };
}

function operationFacts(method: string, bucket: string): SpanFacts {
  return {
    "rpc.system": "aws-api",
    "rpc.service": "S3",
    "rpc.method": method,
    "aws.s3.bucket": bucket,
  };
}

function noteAnswer(span: Span, { $metadata: { httpStatusCode, requestId } }: S3Output): void {
  span.set({
    ...(httpStatusCode === undefined ? {} : { "http.response.status_code": httpStatusCode }),
    ...(requestId === undefined ? {} : { "aws.request_id": requestId }),
  });
}

/** An absent object is an answer. A cancelled operation is no failure; a late one is. */
function endFailed(span: Span, error: unknown, signal: AbortSignal | undefined): void {
  const metadata = (error as Partial<S3Output> | undefined)?.$metadata;
  if (metadata !== undefined) noteAnswer(span, { $metadata: metadata });
  const isCancelled = signal?.aborted === true && signal.reason?.name !== "TimeoutError";
  span.end(isCancelled || isNotFound(error) ? undefined : error);
}

/** Ends the span with the body, whichever way it is read. */
function endWithBody(span: Span, body: S3Body): void {
  const toStream = body.transformToWebStream.bind(body);
  const toText = body.transformToString.bind(body);
  body.transformToWebStream = () => watched(toStream(), span);
  body.transformToString = async (encoding) => {
    try {
      const text = await toText(encoding);
      span.end();
      return text;
    } catch (error) {
      span.end(error);
      throw error;
    }
  };
}

/** The body. A reader that has enough cancels it without a reason, so that this is no failure. */
function watched(body: ReadableStream<Bytes>, span: Span): ReadableStream<Bytes> {
  const reader = body.getReader();
  let bytes = 0;
  let isOver = false;
  const end = (error?: unknown) => {
    if (isOver) return;
    isOver = true;
    span.set({ "http.response.body.size": bytes });
    span.end(error);
  };
  return streamFrom({
    async next() {
      try {
        const { value } = await reader.read();
        bytes += value?.length ?? 0;
        if (value === undefined) end();
        return value;
      } catch (error) {
        end(error);
        throw error;
      }
    },
    cancel(reason) {
      end(reason);
      return reader.cancel(reason);
    },
  });
}
