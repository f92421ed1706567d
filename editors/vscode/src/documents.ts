/** Which documents the server is asked about. */

/** Language identifiers of VS Code for the kinds of files that the server reads. */
export const LANGUAGES = ["python", "shellscript", "yaml", "json", "toml", "dockerfile", "dotenv"] as const;

/** Suffixes that the server knows. VS Code gives some of these files other languages, or none without another extension. */
export const SUFFIXES = [
  "py", "pyi", "pyw", "sh", "bash", "sbatch", "slurm", "yaml", "yml", "json", "toml", "env",
] as const;

const NAMES = ["**/{Dockerfile,Containerfile}*", "**/*.{Dockerfile,Containerfile,dockerfile,containerfile}", "**/.env*", "**/.deepspeed_env"];

export interface DocumentFilter {
  scheme: string;
  language?: string;
  pattern?: string;
}

/** The filters for files and for the code cells of notebooks; the server itself decides by a file's name whether it reads it. */
export function documentSelector(): DocumentFilter[] {
  return [
    ...LANGUAGES.map((language) => ({ scheme: "file", language })),
    ...[`**/*.{${SUFFIXES.join(",")}}`, ...NAMES].map((pattern) => ({ scheme: "file", pattern })),
    { scheme: "vscode-notebook-cell", language: "python" },
  ];
}
