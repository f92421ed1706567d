/** Names of rules in what the server sends. */

const SOURCE = "ldlm-lint";
const HEADING = /^### \[?([a-z0-9][a-z0-9-]*)/gm;

/** The parts of a diagnostic of VS Code that tell its rule. */
export interface RuleDiagnostic {
  source?: string | undefined;
  code?: unknown;
}

/** The rules of those diagnostics that are ours, each once. */
export function rulesOf(diagnostics: readonly RuleDiagnostic[]): string[] {
  const names = diagnostics.filter((diagnostic) => diagnostic.source === SOURCE).map((diagnostic) => nameOf(diagnostic.code));
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** The rules that a hover of the server is about, by its headings. */
export function rulesInHover(markdown: string): string[] {
  return [...new Set([...markdown.matchAll(HEADING)].map((match) => match[1] ?? ""))];
}

/** The name in a diagnostic's code, which VS Code wraps into an object when there is a link. */
function nameOf(code: unknown): string | undefined {
  const value = typeof code === "object" && code !== null && "value" in code ? code.value : code;
  return typeof value === "string" ? value : undefined;
}
