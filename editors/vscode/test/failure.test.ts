import assert from "node:assert/strict";
import * as childProcess from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { OLDEST_VERSION, Tail, versionProblem, whyEnded } from "../src/failure";
import { COMMAND } from "./server";

test("an exit code comes with the last line of stderr", () => {
  assert.equal(whyEnded({ code: 2, signal: null, stderr: "warning: a\nerror: no such thing\n" }), "ldlm-lint ended with exit code 2: no such thing");
  assert.equal(whyEnded({ code: null, signal: "SIGKILL", stderr: "" }), "ldlm-lint was ended by SIGKILL.");
});

test("a command from before the server is too old", () => {
  // What a check says of a file that does not exist: such a command takes `server` for a path.
  const child = childProcess.spawnSync(COMMAND, ["check", "server"], { encoding: "utf-8", cwd: os.tmpdir() });
  assert.match(whyEnded({ code: child.status, signal: child.signal, stderr: child.stderr }), /too old for this extension/);
});

test("a command without the library of its server says how to install it", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ldlm-lint-vscode-"));
  // Python takes this in place of the library, as if that were not installed.
  fs.writeFileSync(path.join(folder, "sitecustomize.py"), "import sys\nsys.modules['pygls'] = None\n");
  const search = [folder, process.env["PYTHONPATH"]].filter((entry) => entry !== undefined).join(path.delimiter);
  const child = childProcess.spawnSync(COMMAND, ["server"], { encoding: "utf-8", env: { ...process.env, PYTHONPATH: search } });
  fs.rmSync(folder, { recursive: true });
  const problem = whyEnded({ code: child.status, signal: child.signal, stderr: child.stderr });
  assert.match(problem, /^ldlm-lint is installed without its language server\. The language server needs pygls: python -m pip install /);
});

test("versions are compared by number", () => {
  assert.equal(versionProblem(OLDEST_VERSION), undefined);
  assert.equal(versionProblem("10.0.0"), undefined);
  assert.equal(versionProblem("0.1.0.dev3"), undefined);
  assert.match(versionProblem("0.0.9") ?? "", /^ldlm-lint 0\.0\.9 is too old/);
  assert.match(versionProblem(undefined) ?? "", /^This ldlm-lint is too old/);
});

test("of a long stderr the end is kept", () => {
  const tail = new Tail();
  tail.add("x".repeat(10_000));
  tail.add("\nthe end");
  assert.ok(tail.text.endsWith("\nthe end"));
  assert.ok(tail.text.length < 5000);
});
