/** What the status bar shows. */

export type State =
  | { kind: "starting" }
  | { kind: "ready"; version: string; origin: string }
  | { kind: "stopped" }
  | { kind: "failed"; reason: string };

export interface Shown {
  text: string;
  tooltip: string;
  /** Which of the theme's colours the background has. */
  background: "none" | "error";
}

/** Findings of open documents by URI. */
export class Findings {
  private readonly numbers = new Map<string, number>();

  /** Takes the number of findings of a document, in place of the one before. */
  take(uri: string, number: number): void {
    if (number === 0) {
      this.numbers.delete(uri);
    } else {
      this.numbers.set(uri, number);
    }
  }

  clear(): void {
    this.numbers.clear();
  }

  get documents(): number {
    return this.numbers.size;
  }

  get total(): number {
    return [...this.numbers.values()].reduce((sum, number) => sum + number, 0);
  }
}

export function shown(state: State, findings: Findings): Shown {
  switch (state.kind) {
    case "starting":
      return { text: "$(sync~spin) ldlm-lint", tooltip: "ldlm-lint is starting", background: "none" };
    case "stopped":
      return { text: "$(circle-slash) ldlm-lint", tooltip: "ldlm-lint is stopped", background: "none" };
    case "failed":
      return { text: "$(error) ldlm-lint", tooltip: `${state.reason}\nClick to see the output.`, background: "error" };
    case "ready":
      return { text: ready(findings), tooltip: `${counted(findings)}\nldlm-lint ${state.version}, from ${state.origin}.\nClick to see the output.`, background: "none" };
  }
}

function ready(findings: Findings): string {
  return findings.total === 0 ? "$(check) ldlm-lint" : `$(warning) ldlm-lint: ${findings.total}`;
}

function counted(findings: Findings): string {
  if (findings.total === 0) {
    return "No findings in open files";
  }
  return `${plural(findings.total, "finding")} in ${plural(findings.documents, "open file")}`;
}

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
