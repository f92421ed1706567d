import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULTS, forServer, needsRestart, readSettings } from "../src/settings";

function read(values: Record<string, unknown>): ReturnType<typeof readSettings> {
  return readSettings((name) => values[name]);
}

test("nothing set is the defaults", () => {
  assert.deepEqual(read({}), DEFAULTS);
});

test("what is set is taken", () => {
  const given = { enable: false, path: " /opt/bin/ldlm-lint ", level: "warning", run: "onSave" };
  assert.deepEqual(read(given), { enable: false, path: "/opt/bin/ldlm-lint", level: "warning", run: "onSave" });
});

test("what is not allowed counts as the default", () => {
  assert.deepEqual(read({ enable: null, path: 3, level: "loud", run: ["onSave"] }), DEFAULTS);
});

test("the project's level is no level of the editor", () => {
  assert.deepEqual(forServer(DEFAULTS), { level: "", run: "onType" });
  assert.deepEqual(forServer({ ...DEFAULTS, level: "error", run: "onSave" }), { level: "error", run: "onSave" });
});

test("another command or another switch needs a new process, other settings do not", () => {
  assert.ok(needsRestart(DEFAULTS, { ...DEFAULTS, path: "/opt/bin/ldlm-lint" }));
  assert.ok(needsRestart(DEFAULTS, { ...DEFAULTS, enable: false }));
  assert.ok(!needsRestart(DEFAULTS, { ...DEFAULTS, level: "error", run: "onSave" }));
});
