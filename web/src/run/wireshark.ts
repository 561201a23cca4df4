// Lines for a shell that bring packets to Wireshark. Pure.

/** A word as a shell reads it. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** What passes an interface while it passes: `dilaton capture` asks the server, and starts Wireshark beside itself. */
export function liveLine(origin: string, run: string, place: string, filter: string): string {
  const words = ["dilaton", "--server", origin, "capture", run, place, ...(filter ? [filter] : []), "--wireshark"];
  return words.map(quoted).join(" ");
}
