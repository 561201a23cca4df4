// What somebody does that may fail, and what went wrong the last time: views show that where they were pressed.
import { words } from "../api/client";

export class Doing {
  /** Empty: nothing. */
  wrong = $state("");

  /** Does something; what is thrown is kept in words, and nothing of what went wrong before. */
  readonly act = async (what: () => Promise<unknown>): Promise<void> => {
    this.wrong = "";
    try {
      await what();
    } catch (error) {
      this.wrong = words(error);
    }
  };
}
