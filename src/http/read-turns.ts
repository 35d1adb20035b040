import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { limits } from "../limits.ts";
import { freePiece } from "./free-piece.ts";

/** Reads connections in turns, so that no bytes of one caller keep the event loop from the others. */
export interface ReadTurns {
  /** Reads the connection from now on; called once node:http listens to it. */
  share(socket: Socket): void;
  /** The newest request of its connection, from its head on. */
  follow(request: IncomingMessage, response: ServerResponse): void;
}

interface Connection {
  readonly socket: Socket;
  /** Parses bytes; calls `follow` for each head among them. */
  readonly feed: (bytes: Buffer) => void;
  /** Nothing comes any more: node:http ends its own half, whatever waits to be written. */
  readonly end: (...values: unknown[]) => void;
  /** The end has come, and node:http has not heard of it yet. */
  ended: boolean;
  /** Waits for its turn. */
  queued: boolean;
  /** node:http wants nothing more for now. */
  paused: boolean;
  unanswered: number;
  newest: IncomingMessage | null;
}

const newline = 0x0a;

/**
 * Opens the turns. node:http parses whatever one read brings, all at once: 64 KiB hold 10,000 chunks of a body, or 1,700
 * requests, and as many connections as there are bring that in one turn of the event loop. Each chunk, header and request
 * has a line of its own, so a slice of few lines is few calls of the parser, and a long body in one piece is one.
 */
export function openReadTurns(monotonicMs: () => number): ReadTurns {
  const connections = new WeakMap<Socket, Connection>();
  const turns = openTurns(monotonicMs);
  return {
    share(socket) {
      const connection = takeOver(socket, turns);
      if (connection !== null) connections.set(socket, connection);
    },
    follow(request, response) {
      const connection = connections.get(request.socket);
      if (connection === undefined) return;
      connection.newest = request;
      connection.unanswered += 1;
      request.on("resume", () => turns.wake(connection));
      response.once("close", () => {
        connection.unanswered -= 1;
        turns.wake(connection);
      });
    },
  };
}

/** Whose slice is parsed next. */
interface Turns {
  /** At once where there is time for it. */
  read(connection: Connection): void;
  /** Later: where this is called may be within a slice of another connection, or of this one. */
  wake(connection: Connection): void;
}

function openTurns(monotonicMs: () => number): Turns {
  /** Those with something new to read come before those that had a turn and have more. */
  const [fresh, others]: [Connection[], Connection[]] = [[], []];
  let spentMs = 0;
  let scheduled = false;
  let feeding = false;

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(turn);
  }

  function turn(): void {
    scheduled = false;
    spentMs = 0;
    while (hasTime()) {
      const next = fresh.shift() ?? others.shift();
      if (next === undefined) return;
      next.queued = false;
      serve(next);
    }
    if (fresh.length + others.length > 0) schedule();
  }

  function hasTime(): boolean {
    return spentMs < limits.readTurnMs;
  }

  function queue(connection: Connection, line: Connection[]): void {
    if (connection.queued) return;
    connection.queued = true;
    line.push(connection);
    schedule();
  }

  /** As long as this turn has time; what is left waits for another. */
  function serve(connection: Connection): void {
    feeding = true;
    let more = true;
    for (let atMs = monotonicMs(); more && hasTime();) {
      more = !isHeld(connection) && feedSlice(connection);
      const nowMs = monotonicMs();
      spentMs += nowMs - atMs;
      atMs = nowMs;
    }
    feeding = false;
    if (more) queue(connection, others);
  }

  return {
    read(connection) {
      if (feeding || !hasTime()) return queue(connection, fresh);
      // Ends the time of this turn.
      schedule();
      if (!connection.queued) serve(connection);
    },
    wake: (connection) => queue(connection, others),
  };
}

/** Makes what node:http asks of its connection ask the turns; null: it does not listen as it is known to. */
function takeOver(socket: Socket, turns: Turns): Connection | null {
  // It reads the connection below JavaScript until something else listens.
  const feed = socket.listeners("data").at(-1) as ((bytes: Buffer) => void) | undefined;
  const end = socket.listeners("end").at(-1);
  if (feed === undefined || end === undefined) return null;
  socket.off("data", feed).off("end", end);
  const connection: Connection = {
    socket,
    feed,
    end,
    ended: false,
    queued: false,
    paused: false,
    unanswered: 0,
    newest: null,
  };
  socket.pause = () => {
    connection.paused = true;
    return socket;
  };
  socket.resume = () => {
    connection.paused = false;
    turns.wake(connection);
    endUnlessPaused(connection);
    return socket;
  };
  socket.on("readable", () => turns.read(connection));
  socket.on("end", () => {
    connection.ended = true;
    endUnlessPaused(connection);
  });
  return connection;
}

function endUnlessPaused(connection: Connection): void {
  if (!connection.ended || connection.paused) return;
  connection.ended = false;
  connection.end();
}

/** A body is not read before its handler asks for it, and so many requests are not taken before some are answered. */
function isHeld({ newest, paused, unanswered }: Connection): boolean {
  if (paused || unanswered >= limits.pipelinedRequestsMax) return true;
  return newest !== null && !newest.complete && newest.readableFlowing !== true;
}

/** False: there was nothing more to read. */
function feedSlice({ feed, socket }: Connection): boolean {
  const bytes = socket.read() as Buffer | null;
  if (bytes === null) return false;
  const end = endOfLines(bytes, limits.readSliceLines);
  // Back in the connection's own buffer, the rest stops it from reading more than that holds, and from telling its end.
  if (end < bytes.byteLength) socket.unshift(bytes.subarray(end));
  feed(end < bytes.byteLength ? bytes.subarray(0, end) : bytes);
  if (end === bytes.byteLength) freePiece(bytes);
  return end < bytes.byteLength;
}

function endOfLines(bytes: Buffer, lines: number): number {
  let end = 0;
  for (let line = 0; line < lines; line += 1) {
    const at = bytes.indexOf(newline, end);
    if (at === -1) return bytes.byteLength;
    end = at + 1;
  }
  return end;
}
