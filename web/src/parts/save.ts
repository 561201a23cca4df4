/** Has the browser save something as a file. */
export function save(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name.replace(/[^A-Za-z0-9._-]+/g, "_");
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
