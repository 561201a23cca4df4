// Which view is shown: the part of the address behind #, so that the server knows of one page alone.

export interface Place {
  view: string;
  id: string;
  rest: string;
}

export function placeOf(hash: string): Place {
  const [view = "", id = "", rest = ""] = hash.replace(/^#\/?/, "").split("/");
  return { view: view || "labs", id, rest };
}

class Route {
  place = $state(placeOf(location.hash));
  /** Asks whoever looks at a view whether they leave it, where something would be lost; null: nothing would. */
  mayLeave: (() => boolean) | null = null;

  constructor() {
    addEventListener("hashchange", ({ oldURL }) => {
      if (this.mayLeave?.() === false) history.replaceState(null, "", oldURL);
      else this.place = placeOf(location.hash);
    });
  }

  go(path: string): void {
    location.hash = `#/${path}`;
  }
}

export const route = new Route();
