import type { PageStart } from "../ledger/administration/lists.ts";
import type { Receipt } from "../ledger/receipt.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { everyReceipt } from "./report-routes.ts";
import { generationToJson } from "./service-schemas.ts";
import type { WatchedService } from "./watched-service.ts";

/** What a look found to be different from the look before. */
export interface RowChanges {
  /** Rows that are new or cancelled, each as the JSON of `generationSchema`. */
  readonly rows: readonly string[];
  /** Rows that ended, or that are older than as many rows as there may be. */
  readonly removed: readonly string[];
  readonly tokens: readonly (readonly [id: string, outputTokens: number])[];
  /** How many requests run, also those that are beyond the rows. */
  readonly running: number;
  readonly isNothing: boolean;
}

interface Known {
  readonly receipt: Receipt;
  readonly cancelled: boolean;
  /** Made once: every watcher is sent the same. */
  readonly json: string;
}

/** The running requests as those know them who watch: of each the ledger is asked once. */
export class LiveRows {
  readonly #known = new Map<string, Known>();
  #tokens: ReadonlyMap<string, number> = new Map();
  #running = 0;

  /** Looks again, at all replicas' requests and at the tokens of this one's. */
  async look(ledger: StoreLedger, service: Pick<WatchedService, "running">): Promise<RowChanges> {
    const [open, progress] = await Promise.all([
      ledger.openRequests(limits.liveRowsMax),
      service.running(),
    ]);
    const ids = new Set<string>(open.ids);
    const removed = [...this.#known.keys()].filter((id) => !ids.has(id));
    for (const id of removed) this.#known.delete(id);
    const rows = await this.#readNew(ledger, open.ids);
    for (const id of open.cancelled) rows.push(...this.#cancel(id));
    const tokens = progress.flatMap(({ outputTokens, requestId }) =>
      this.#known.has(requestId) ? [[requestId, outputTokens] as const] : [],
    );
    const moved = tokens.filter(([id, count]) => this.#tokens.get(id) !== count);
    const wasRunning = this.#running;
    this.#tokens = new Map(tokens);
    this.#running = open.count;
    const isNothing =
      rows.length + removed.length + moved.length === 0 && wasRunning === this.#running;
    return { rows, removed, tokens: moved, running: this.#running, isNothing };
  }

  /** All that is known, for who begins to watch. */
  all(): RowChanges {
    const rows = [...this.#known.values()].map(({ json }) => json);
    const isNothing = false;
    return { rows, removed: [], tokens: [...this.#tokens], running: this.#running, isNothing };
  }

  get running(): number {
    return this.#running;
  }

  /** Pages of the newest, as far as there is one among them that is not known. */
  async #readNew(ledger: StoreLedger, ids: readonly string[]): Promise<string[]> {
    const oldest = ids.findLastIndex((id) => !this.#known.has(id));
    const rows: string[] = [];
    let after: PageStart | null = null;
    // Those that were admitted since the ids were read come first; they are in the next look.
    for (let read = 0; read <= oldest; read += limits.liveRowsAtOnce) {
      const page: readonly Receipt[] = await ledger.pageReceipts({
        ...everyReceipt,
        state: "open",
        after,
        rowsMax: Math.min(limits.liveRowsAtOnce, oldest + 1 - read + newMeanwhile),
      });
      for (const receipt of page)
        if (!this.#known.has(receipt.requestId)) rows.push(this.#learn(receipt, false));
      const last = page.at(-1);
      if (last === undefined) break;
      after = { atMs: last.admittedAtMs, id: last.requestId };
    }
    return rows;
  }

  #cancel(id: string): readonly string[] {
    const known = this.#known.get(id);
    return known === undefined || known.cancelled ? [] : [this.#learn(known.receipt, true)];
  }

  #learn(receipt: Receipt, cancelled: boolean): string {
    const json = JSON.stringify(generationToJson(receipt, { cancelled, tokens: null }));
    this.#known.set(receipt.requestId, { receipt, cancelled, json });
    return json;
  }
}

/** Rows of the first page that may be newer than the ids. */
const newMeanwhile = 20;
