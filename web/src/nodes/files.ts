// Files of a node, by programs that every system has: what is in a directory, what a file has, and one that is put there.
import { inNode, type Ended } from "./session";

export interface NodeFile {
  name: string;
  kind: "directory" | "file" | "link" | "other";
  sizeBytes: number | null;
}

export const SHOWN_BYTES_MAX = 64 << 10;
export const FETCHED_BYTES_MAX = 64 << 20;

const KINDS: Record<string, NodeFile["kind"]> = { d: "directory", "-": "file", l: "link" };

/** What `ls -lA` has printed, which a guest writes: lines that are none are left out. */
export function listed(text: string): NodeFile[] {
  const found: NodeFile[] = [];
  for (const line of text.split("\n")) {
    const parts = /^(.)\S+\s+\d+\s+\S+\s+\S+\s+(\d+)(?:,\s*\d+)?\s+\S+\s+\S+\s+\S+\s(.+)$/.exec(line);
    if (!parts) continue;
    const kind = KINDS[parts[1]!] ?? "other";
    const name = kind === "link" ? parts[3]!.split(" -> ")[0]! : parts[3]!;
    found.push({ name, kind, sizeBytes: kind === "file" ? Number(parts[2]) : null });
  }
  return found.sort(
    (a, b) => Number(b.kind === "directory") - Number(a.kind === "directory") || (a.name < b.name ? -1 : 1),
  );
}

/** A path in a directory; `..` is the one above. */
export function joinedPath(directory: string, name: string): string {
  const parts = directory.split("/").filter(Boolean);
  if (name === "..") parts.pop();
  else if (name) parts.push(name);
  return `/${parts.join("/")}`;
}

function well(ended: Ended): Ended {
  if (ended.status) throw new Error(ended.errors || `status ${ended.status}`);
  return ended;
}

export async function list(run: string, node: string, directory: string): Promise<NodeFile[]> {
  // With a slash behind it a link to a directory is that directory.
  const argv = ["env", "LC_ALL=C", "ls", "-lA", "--", `${directory.replace(/\/+$/, "")}/`];
  return listed(new TextDecoder().decode(well(await inNode(run, node, argv, { most: 4 << 20 })).output));
}

export async function read(run: string, node: string, path: string, most: number): Promise<Ended> {
  return well(await inNode(run, node, ["cat", "--", path], { most }));
}

/** Puts a file there, whole or not at all. */
export async function write(run: string, node: string, path: string, bytes: Uint8Array): Promise<void> {
  const script = 'cat > "$1.part" && mv -f -- "$1.part" "$1" || { rm -f -- "$1.part"; exit 1; }';
  well(await inNode(run, node, ["sh", "-c", script, "sh", path], { input: bytes }));
}
