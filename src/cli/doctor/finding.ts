/** The result of a check. `not checked`: it could not tell. */
export type Mark = "ok" | "warning" | "failed" | "not checked";

/** One line of the report. */
export interface Finding {
  readonly mark: Mark;
  /** The checked thing. */
  readonly subject: string;
  readonly fact: string;
  /** Remedy. */
  readonly advice?: string;
}

/** Builds the findings of one subject. */
export function findingsOn(subject: string):
  & Readonly<Record<"ok", (fact: string) => Finding>>
  & Readonly<
    Record<"warning" | "failed" | "notChecked", (fact: string, advice: string) => Finding>
  > {
  return {
    ok: (fact) => ({ mark: "ok", subject, fact }),
    warning: (fact, advice) => ({ mark: "warning", subject, fact, advice }),
    failed: (fact, advice) => ({ mark: "failed", subject, fact, advice }),
    notChecked: (fact, advice) => ({ mark: "not checked", subject, fact, advice }),
  };
}
