import assert from "node:assert/strict";
import { test } from "node:test";

import { type Command, CommandNotFound, findCommand, type Surroundings } from "../src/command";

const INSTALLED = ["/usr/bin/ldlm-lint", "/env/bin/ldlm-lint", "/home/ann/bin/ldlm-lint", "/src/repo/.venv/bin/ldlm-lint", "/usr/bin/other-lint"];

function find(changes: Partial<Surroundings> & { programs?: string[] }): Command {
  const programs = changes.programs ?? INSTALLED;
  return findCommand({
    setting: "",
    trusted: true,
    folders: ["/src/repo"],
    interpreter: undefined,
    searchPath: "/usr/local/bin:/usr/bin",
    home: "/home/ann",
    platform: "linux",
    isExecutable: (path) => programs.includes(path),
    ...changes,
  });
}

test("the selected Python environment comes before PATH", () => {
  assert.deepEqual(find({ interpreter: "/env/bin/python" }), { path: "/env/bin/ldlm-lint", origin: "the selected Python environment" });
});

test("PATH has it where the environment has not", () => {
  assert.deepEqual(find({ interpreter: "/bare/bin/python" }), { path: "/usr/bin/ldlm-lint", origin: "PATH" });
});

test("the setting comes before both", () => {
  const expected = { path: "/home/ann/bin/ldlm-lint", origin: "the setting ldlmLint.path" };
  assert.deepEqual(find({ setting: "/home/ann/bin/ldlm-lint", interpreter: "/env/bin/python" }), expected);
  assert.deepEqual(find({ setting: "~/bin/ldlm-lint" }), expected);
  assert.equal(find({ setting: "${workspaceFolder}/.venv/bin/ldlm-lint" }).path, "/src/repo/.venv/bin/ldlm-lint");
  assert.equal(find({ setting: "other-lint" }).path, "/usr/bin/other-lint");
});

test("a wrong setting is said, not passed over", () => {
  for (const [setting, words] of [
    ["/nowhere/ldlm-lint", /is not a program/],
    ["bin/ldlm-lint", /must be an absolute path/],
    ["no-such-lint", /which is not in PATH/],
  ] as const) {
    assert.throws(() => find({ setting }), (error) => error instanceof CommandNotFound && words.test(error.message));
  }
});

test("a missing command says where it was looked for", () => {
  assert.throws(() => find({ programs: [] }), /ldlm-lint is not in PATH\. Install it/);
  assert.throws(() => find({ programs: [], interpreter: "/env/bin/python" }), /neither in the selected Python environment nor in PATH/);
});

test("nothing of a workspace that is not trusted is started", () => {
  const untrusted = { trusted: false, interpreter: "/src/repo/.venv/bin/python" };
  assert.equal(find(untrusted).origin, "PATH");
  assert.equal(find({ ...untrusted, searchPath: "/src/repo/.venv/bin:/usr/bin" }).path, "/usr/bin/ldlm-lint");
  assert.throws(() => find({ ...untrusted, setting: "${workspaceFolder}/.venv/bin/ldlm-lint" }), /which you do not trust/);
  assert.throws(() => find({ ...untrusted, setting: "/src/repo/../repo/.venv/bin/ldlm-lint" }), /which you do not trust/);
  assert.equal(find({ ...untrusted, setting: "/home/ann/bin/ldlm-lint" }).path, "/home/ann/bin/ldlm-lint");
});

test("a folder whose name begins with dots lies inside the workspace all the same", () => {
  const setting = "/src/repo/..hidden/ldlm-lint";
  assert.throws(() => find({ trusted: false, setting, programs: [setting] }), /which you do not trust/);
});

test("relative entries of PATH are left out", () => {
  assert.throws(() => find({ searchPath: ".:bin::", programs: ["ldlm-lint", "bin/ldlm-lint", "./ldlm-lint"] }), CommandNotFound);
});

test("on Windows the program has a suffix", () => {
  const windows = { platform: "win32", folders: ["C:\\work"], searchPath: "C:\\tools;C:\\Python\\Scripts" } as const;
  const programs = ["C:\\Python\\Scripts\\ldlm-lint.exe", "D:\\env\\Scripts\\ldlm-lint.exe"];
  assert.equal(find({ ...windows, programs }).path, "C:\\Python\\Scripts\\ldlm-lint.exe");
  assert.equal(find({ ...windows, programs, interpreter: "D:\\env\\Scripts\\python.exe" }).path, "D:\\env\\Scripts\\ldlm-lint.exe");
  assert.equal(find({ ...windows, programs, trusted: false, setting: "D:\\env\\Scripts\\ldlm-lint.exe" }).path, "D:\\env\\Scripts\\ldlm-lint.exe");
});
