/** The samples of one scrape. */
export class Scrape {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** `series` as the text has it: `name{label="value",…}`. Throws when there is no such one. */
  value(series: string): number {
    const line = this.text.split("\n").find((one) => one.startsWith(`${series} `));
    if (line === undefined) throw new Error(`Cannot find series ${series}`);
    return Number(line.slice(series.length + 1));
  }

  /** All series of a name that are not 0, with their labels. */
  nonZero(name: string): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.text.split("\n").filter((line) => line.startsWith(`${name}{`)).map((line) => {
        const end = line.lastIndexOf(" ");
        return [line.slice(name.length, end), Number(line.slice(end + 1))] as const;
      }).filter(([, value]) => value !== 0),
    );
  }

  /** The counts of the requests to an upstream, by result. */
  upstreamResults(url: string): Readonly<Record<string, number>> {
    const counted = this.nonZero("larder_upstream_request_duration_seconds_count");
    const ofUpstream = Object.entries(counted).filter(([labels]) => labels.includes(`"${url}"`));
    return Object.fromEntries(
      ofUpstream.map(([labels, count]) => [/result="(\w+)"/.exec(labels)?.[1], count]),
    );
  }
}

export async function scrape(
  server: { get(path: string): Promise<Response> },
): Promise<Scrape> {
  const answer = await server.get("/metrics");
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}`);
  return new Scrape(await answer.text());
}
