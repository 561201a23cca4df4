// Who is logged in, and what they may do.
import { ask, leaving, Problem } from "../api/client";
import type { Me } from "../api/types";

type Standing = "asking" | "in" | "out" | "away";

class Session {
  me = $state<Me | null>(null);
  standing = $state<Standing>("asking");

  constructor() {
    leaving.addEventListener("leave", () => this.leave());
  }

  async begin(): Promise<void> {
    this.standing = "asking";
    try {
      this.me = await ask<Me>("GET", "/session");
      this.standing = "in";
    } catch (error) {
      if (error instanceof Problem && error.status === 401) this.leave();
      else this.standing = "away";
    }
  }

  async useLink(once: string): Promise<void> {
    await ask("POST", "/session", { once });
    await this.begin();
  }

  async usePassword(name: string, password: string): Promise<void> {
    await ask("POST", "/session", { name, password });
    await this.begin();
  }

  async end(): Promise<void> {
    await ask("DELETE", "/session");
    this.leave();
  }

  may(permission: string): boolean {
    return this.me?.permissions.includes(permission) ?? false;
  }

  maySomewhere(permission: string): boolean {
    return this.me?.somewhere.includes(permission) ?? false;
  }

  mayEverywhere(permission: string): boolean {
    return this.me?.everywhere.includes(permission) ?? false;
  }

  private leave(): void {
    this.me = null;
    this.standing = "out";
  }
}

export const session = new Session();
