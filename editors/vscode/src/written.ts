/** Writes the HTML report of a folder with the command. */

import * as childProcess from "node:child_process";
import * as fs from "node:fs";

import { whyEnded } from "./failure";

/** Exit codes of a check that was done. After 3 something could not be checked: if there is a report, it says what. */
const DONE = [0, 1, 3];

/** Checks a folder; returns why there is no report, undefined if there is one. `signal` ends the check. */
export function written(command: string, folder: string, report: string, signal: AbortSignal): Promise<string | undefined> {
  // An older report must not pass for this one.
  fs.rmSync(report, { force: true });
  return new Promise((resolve) => {
    const child = childProcess.execFile(command, ["--format", "html", "--output", report, folder], { cwd: folder, signal }, (error, _stdout, stderr) => {
      if (signal.aborted) {
        resolve("The check was cancelled: there is no report.");
      } else if (child.exitCode !== null && DONE.includes(child.exitCode) && fs.existsSync(report)) {
        resolve(undefined);
      } else {
        resolve(child.pid === undefined && error !== null ? error.message : whyEnded({ code: child.exitCode, signal: child.signalCode, stderr }));
      }
    });
  });
}
