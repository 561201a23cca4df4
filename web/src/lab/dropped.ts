// Files of the user's own machine, from which labs begin: what they are called and what is in them.
import { t } from "../words";

/** As long as the text of a lab may be. */
const BYTES_MAX = 1_000_000;

export interface Dropped {
  name: string;
  text: string;
}

/** What a file has; one that is larger than any lab is not read. */
export async function dropped(file: File): Promise<Dropped> {
  if (file.size > BYTES_MAX) throw new Error(`${file.name}: ${t.labs.tooLarge}`);
  return { name: file.name, text: await file.text() };
}

/** What a lab of a file is called, until somebody says otherwise. */
export function labName(file: Dropped): string {
  return file.name.replace(/(?<=.)\..*$/, "").slice(0, 100);
}
