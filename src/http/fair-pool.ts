import { Failure } from "../failure.ts";

/** A thread that does one task after another. */
export interface PoolThread<Task, Answer> {
  /** Rejects with a Failure for a task that failed; the thread takes the next task all the same. */
  run(task: Task): Promise<Answer>;
  stop(): Promise<void>;
}

/** How a pool is made. */
export interface PoolParts<Task, Answer> {
  readonly threads: number;
  /** Threads that one account may keep busy with tasks that are not patient; the others are there for whoever else comes. */
  readonly threadsPerAccount: number;
  /** Threads that patient tasks may keep busy, whoever sent them. */
  readonly threadsForPatient: number;
  /** Whether a task may wait for others of its kind, so that they keep no thread from the other kind. */
  readonly isPatient: (task: Task) => boolean;
  readonly openThread: () => PoolThread<Task, Answer>;
}

/** A few threads, shared fairly: what one account sends delays its own tasks, not those of others. */
export interface FairPool<Task, Answer> extends AsyncDisposable {
  /** Rejects when `gone` is aborted before the task has begun: whoever sent it reads no answer. */
  run(task: Task, gone: AbortSignal): Promise<Answer>;
  readonly load: PoolLoad;
}

/** How much a pool has to do. */
export interface PoolLoad {
  readonly waiting: number;
  /** Threads that do a task. */
  readonly busy: number;
}

interface Waiting<Task, Answer> {
  readonly task: Task;
  readonly answered: PromiseWithResolvers<Answer>;
}

/** Opens the pool; its threads are opened with their first tasks. */
export function openFairPool<Task extends { readonly accountId: string }, Answer>(
  parts: PoolParts<Task, Answer>,
): FairPool<Task, Answer> {
  const turns = openTurns<Task, Waiting<Task, Answer>>();
  const busy = openBusyThreads(parts);
  const idle: PoolThread<Task, Answer>[] = [];
  const opened = new Set<PoolThread<Task, Answer>>();
  let closed = false;

  function openThread(): PoolThread<Task, Answer> {
    const thread = parts.openThread();
    opened.add(thread);
    return thread;
  }

  function begin(): void {
    for (let free = idle.length + parts.threads - opened.size; free > 0; free -= 1) {
      const next = turns.take((task) => busy.hasRoomFor(task));
      if (next === null) return;
      void work(next, idle.pop() ?? openThread());
    }
  }

  async function work(
    { answered, task }: Waiting<Task, Answer>,
    thread: PoolThread<Task, Answer>,
  ): Promise<void> {
    busy.count(task, 1);
    try {
      answered.resolve(await thread.run(task));
    } catch (error) {
      answered.reject(error);
    } finally {
      busy.count(task, -1);
      idle.push(thread);
      begin();
    }
  }

  return {
    get load() {
      return { waiting: turns.count(), busy: opened.size - idle.length };
    },
    run(task, gone) {
      if (closed) return Promise.reject(poolClosed());
      if (gone.aborted) return Promise.reject(callerGone());
      const waiting = { task, answered: Promise.withResolvers<Answer>() };
      const leave = (): void => {
        if (turns.remove(waiting)) waiting.answered.reject(callerGone());
      };
      gone.addEventListener("abort", leave, { once: true });
      turns.add(waiting);
      begin();
      return waiting.answered.promise.finally(() => gone.removeEventListener("abort", leave));
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      for (const { answered } of turns.clear()) answered.reject(poolClosed());
      await Promise.all([...opened].map((thread) => thread.stop()));
    },
  };
}

/** Which threads are busy with what. */
function openBusyThreads<Task extends { readonly accountId: string }>(
  parts: Omit<PoolParts<Task, never>, "openThread">,
) {
  const impatient = new Map<string, number>();
  let patient = 0;
  return {
    hasRoomFor: (task: Task): boolean =>
      parts.isPatient(task)
        ? patient < parts.threadsForPatient
        : (impatient.get(task.accountId) ?? 0) < parts.threadsPerAccount,
    count(task: Task, change: 1 | -1): void {
      if (parts.isPatient(task)) {
        patient += change;
        return;
      }
      const left = (impatient.get(task.accountId) ?? 0) + change;
      if (left > 0) impatient.set(task.accountId, left);
      else impatient.delete(task.accountId);
    },
  };
}

/** Accounts take turns: one task of each that waits, the first that may run, and then the next account's. */
function openTurns<
  Task extends { readonly accountId: string },
  One extends { readonly task: Task },
>() {
  /** In the order of their turns; an account without a waiting task is not in it. */
  const queues = new Map<string, One[]>();

  function takeFrom(accountId: string, at: number): One | null {
    const queue = queues.get(accountId) ?? [];
    const [one] = at === -1 ? [] : queue.splice(at, 1);
    if (queue.length === 0) queues.delete(accountId);
    return one ?? null;
  }

  return {
    add(one: One): void {
      const { accountId } = one.task;
      const queue = queues.get(accountId);
      if (queue === undefined) queues.set(accountId, [one]);
      else queue.push(one);
    },
    take(mayRun: (task: Task) => boolean): One | null {
      for (const [accountId, queue] of queues) {
        const one = takeFrom(
          accountId,
          queue.findIndex(({ task }) => mayRun(task)),
        );
        if (one === null) continue;
        // Its turn is over: the account goes behind all others.
        if (queues.delete(accountId)) queues.set(accountId, queue);
        return one;
      }
      return null;
    },
    /** False: it was taken already. */
    remove(one: One): boolean {
      const { accountId } = one.task;
      return takeFrom(accountId, (queues.get(accountId) ?? []).indexOf(one)) !== null;
    },
    count: (): number => [...queues.values()].reduce((count, queue) => count + queue.length, 0),
    clear(): readonly One[] {
      const all = [...queues.values()].flat();
      queues.clear();
      return all;
    },
  };
}

/** For the log: its reader has left. */
function callerGone(): Failure {
  return new Failure("invalid_request", "The request broke off.");
}

function poolClosed(): Failure {
  return new Failure("overloaded", "The service is shutting down. Try again in a moment.", {
    retryAfterSeconds: 5,
  });
}
