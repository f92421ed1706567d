/** Text that others wrote, such as names of files, in messages of VS Code. */

/** The text without links: VS Code makes `[text](command:…)` in a message a link that runs the command. */
export function withoutLinks(text: string): string {
  return text.replaceAll("](", "] (");
}
