import assert from "node:assert/strict";
import { test } from "node:test";

import { Findings, shown } from "../src/status";

const READY = { kind: "ready", version: "0.1.0", origin: "PATH" } as const;

test("the number of findings is that of all open documents", () => {
  const findings = new Findings();
  assert.equal(shown(READY, findings).text, "$(check) ldlm-lint");
  findings.take("file:///a.py", 2);
  findings.take("file:///b.py", 1);
  findings.take("file:///a.py", 3);
  assert.equal(shown(READY, findings).text, "$(warning) ldlm-lint: 4");
  assert.match(shown(READY, findings).tooltip, /^4 findings in 2 open files\nldlm-lint 0\.1\.0, from PATH\./);
  findings.take("file:///a.py", 0);
  assert.match(shown(READY, findings).tooltip, /^1 finding in 1 open file\n/);
  findings.clear();
  assert.match(shown(READY, findings).tooltip, /^No findings in open files\n/);
});

test("a failure says why, and is red", () => {
  const failed = shown({ kind: "failed", reason: "no such command" }, new Findings());
  assert.deepEqual([failed.text, failed.background], ["$(error) ldlm-lint", "error"]);
  assert.match(failed.tooltip, /^no such command\n/);
  assert.equal(shown({ kind: "starting" }, new Findings()).background, "none");
  assert.equal(shown({ kind: "stopped" }, new Findings()).text, "$(circle-slash) ldlm-lint");
});
