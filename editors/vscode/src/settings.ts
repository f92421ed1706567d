/** The settings of the extension, and what the server is told of them. */

export const SECTION = "ldlmLint";

export const LEVELS = ["fromProject", "error", "warning", "refactor", "info"] as const;
export const RUNS = ["onType", "onSave"] as const;

export interface Settings {
  enable: boolean;
  /** The command to start; empty means that the extension looks for it. */
  path: string;
  level: (typeof LEVELS)[number];
  run: (typeof RUNS)[number];
}

export const DEFAULTS: Settings = { enable: true, path: "", level: "fromProject", run: "onType" };

/** What the server understands. An empty level leaves the level to the project's configuration. */
export interface ServerSettings {
  level: string;
  run: string;
}

/** Settings from VS Code. A value that is not allowed counts as the default: VS Code marks it in the settings file. */
export function readSettings(get: (name: keyof Settings) => unknown): Settings {
  const path = get("path");
  return {
    enable: get("enable") !== false,
    path: typeof path === "string" ? path.trim() : DEFAULTS.path,
    level: LEVELS.find((level) => level === get("level")) ?? DEFAULTS.level,
    run: RUNS.find((run) => run === get("run")) ?? DEFAULTS.run,
  };
}

export function forServer(settings: Settings): ServerSettings {
  return { level: settings.level === "fromProject" ? "" : settings.level, run: settings.run };
}

/** Whether a change of the settings needs another process; the others are sent to the one that runs. */
export function needsRestart(before: Settings, after: Settings): boolean {
  return before.enable !== after.enable || before.path !== after.path;
}
