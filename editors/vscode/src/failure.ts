/** Says in plain words why the server does not run. */

/** The oldest version of ldlm-lint whose server has everything that this extension asks for. */
export const OLDEST_VERSION = "0.1.0";

const LONGEST_TAIL = 4000;

/** The end of what a process wrote to stderr. */
export class Tail {
  text = "";

  add(chunk: string): void {
    this.text = (this.text + chunk).slice(-LONGEST_TAIL);
  }
}

export interface Ended {
  code: number | null;
  signal: string | null;
  stderr: string;
}

/** Why the server ended before it answered. */
export function whyEnded(ended: Ended): string {
  const lastLine = ended.stderr.trimEnd().split("\n").at(-1)?.trim() ?? "";
  const said = lastLine.replace(/^(?:ldlm-lint: )?error: /, "");
  if (/needs pygls/.test(said)) {
    // The command itself says how to install it.
    return `ldlm-lint is installed without its language server. ${capitalized(said)}`;
  }
  if (/^server: no such file/.test(said) || /invalid choice: 'server'/.test(said)) {
    return tooOld("");
  }
  const how = ended.signal !== null ? `was ended by ${ended.signal}` : `ended with exit code ${ended.code ?? "unknown"}`;
  return `ldlm-lint ${how}${said === "" ? "." : `: ${said}`}`;
}

/** What to say of a server whose version is too old, undefined if it is not. */
export function versionProblem(version: string | undefined): string | undefined {
  return version === undefined || isOlder(version, OLDEST_VERSION) ? tooOld(version ?? "") : undefined;
}

function tooOld(version: string): string {
  const which = version === "" ? "This ldlm-lint" : `ldlm-lint ${version}`;
  return `${which} is too old for this extension, which needs version ${OLDEST_VERSION} or newer. Update it in the environment it is installed in.`;
}

function isOlder(version: string, other: string): boolean {
  const [left, right] = [numbers(version), numbers(other)];
  const at = right.findIndex((number, index) => number !== (left[index] ?? 0));
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

function numbers(version: string): number[] {
  return version.split(".").slice(0, 3).map((part) => Number.parseInt(part, 10) || 0);
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
