/** Every number of the specification, and every bound that keeps one request from hurting another. */
export const limits = {
  /** [specification] JSON request body. */
  bodyBytesMax: 4 * 1024 * 1024,
  /** Levels of JSON nesting; the body itself is level 1. Deeper input only exhausts stacks. */
  bodyNestingMax: 64,
  /**
   * Values in one body: lists, objects, and entries of them. One for every eight bytes of the largest conversation, where
   * agents have one for forty and more; so many take a thread 0.1 s and 25 MiB, four times as many took 0.5 s and 90 MiB.
   */
  bodyValuesMax: 256 * 1024,
  /** Bodies above this are parsed and prepared off the event loop: parsing costs about 10 ms a MiB. */
  bodyInlineBytesMax: 64 * 1024,
  /** [specification] Messages, or input items. */
  inputItemsMax: 2_000,
  /** [specification] Tool definitions after flattening. */
  toolsMax: 128,
  /** [specification] UTF-8 bytes of the tools' JSON, all sources together. */
  toolBytesMax: 1024 * 1024,
  /** Characters of a tool's or a namespace's name; agents' names for MCP tools exceed 64. */
  toolNameCharactersMax: 128,
  /** [specification] Conservative bound on the input, in tokens. */
  inputBoundMax: 2_000_000,
  /** Parts of that bound: every item, every tool, every request. */
  inputBoundPerItem: 16,
  inputBoundPerTool: 16,
  inputBoundPerRequest: 64,
  /** [specification] Output tokens when the client names none. */
  outputAllowanceDefault: 32_768,
  /** [specification] Larger explicit allowances are capped to this. */
  outputAllowanceMax: 65_536,
  /** Bytes of input that count as one token in the quick estimate; no tokenizer on the way to an answer. */
  bytesPerTokenEstimate: 4,
  /** How often a deployment is asked again with a smaller limit when it has no room for the first: halved, to an eighth. */
  outputAllowanceCutsMax: 3,
  /** Characters of output that count as one token where an engine neither reports usage nor sends token by token. */
  charactersPerTokenCount: 4,
  /** [specification] Open reservations of one account. */
  concurrencyPerAccount: 4,
  /** [specification] Requests of one key in any 60 seconds. */
  requestsPerMinute: 600,
  rateWindowMs: 60_000,
  /** What settings, accounts and keys may have of these at most: a hundred times what one process was measured to bear. */
  concurrencyMax: 1_000_000,
  requestsPerMinuteMax: 100_000_000,
  /** SDKs ignore longer advice and retry sooner. */
  retryAfterSecondsMax: 60,
  /** A header block or a body that takes longer is a slow caller. */
  requestReceiveMs: 60_000,
  headerBytesMax: 32 * 1024,
  /** A body of which nothing comes for this long has no reason to wait for the rest of its minute. */
  bodyStallMs: 10_000,
  /**
   * A piece of a body costs the event loop some 4 us whatever its size. Clients that frame bodies in chunks make them of
   * kilobytes; beyond the first 2,048 no client has a reason for an average below this, and 64 KiB in it are all that may come.
   */
  tinyPieceBytes: 32,
  tinyPiecesMax: 2_048,
  /**
   * What all connections together may have parsed in one turn of the event loop, in slices of so many lines: a chunk of a
   * body is two, a header one, and each costs up to 10 us. A request with its headers is one slice, mostly.
   */
  readTurnMs: 2,
  readSliceLines: 32,
  /** Requests that one connection may have sent without having been answered; what comes behind them is not looked at. */
  pipelinedRequestsMax: 2,
  /** A handshake of TLS is two round trips; a connection without one holds a place. */
  tlsHandshakeMs: 10_000,
  /** How often files of certificates are looked at: two small reads, and a renewal has days. */
  certificateLookMs: 10_000,
  /** Descriptors that are no caller's and no deployment's: ledger, files, logs, threads, the operator. */
  descriptorsReserved: 128,
  /** How long the log is quiet after it said that there is no connection left. */
  connectionsFullQuietMs: 60_000,
  /** After an answer that came before the body's end, what is still sent is thrown away up to these. */
  lingerMs: 5_000,
  lingerBytesMax: 16 * 1024 * 1024,
  /** The same where no key was accepted. A body that the bearer of a key could have sent still fits. */
  lingerWithoutKeyMs: 1_000,
  lingerWithoutKeyBytesMax: 4 * 1024 * 1024,
  /** And for an account that sends more at once than it may; of so many of its requests at a time. */
  lingerBoundedBytesMax: 1024 * 1024,
  lingersBoundedMax: 4,
  /**
   * Requests of one account that may be under way at once, from their authorization until their answers are read: this
   * many, or so many a slot of its concurrency where that is more. Agents count tokens 24 at a time, and SDKs send what
   * was refused again before the answer's end has been noticed here.
   */
  accountRequestsMin: 64,
  accountRequestsPerSlot: 4,
  /** Bytes of bodies that one account may have here before admission, those included that are only announced. */
  accountBodyBytesMax: 24 * 1024 * 1024,
  /** The same for all accounts together, counting what has come: a quarter of a process of 512 MiB is free for more. */
  bodiesBytesMax: 96 * 1024 * 1024,
  /**
   * Threads for large bodies and for counts. An account keeps one of them busy with bodies, and all accounts together one
   * with counts: a thread is left for the body of another account, which then waits for none.
   */
  bodyThreads: 3,
  bodyThreadsPerAccount: 1,
  bodyThreadsForCounts: 1,
  /** After so long without work a thread ends: the heap that a large body left goes back to the system with it. */
  bodyThreadIdleMs: 30_000,
  /** How often one key may look at its account: a page that polls, and a script that reads its receipts. */
  looksAtOnce: 60,
  looksPerSecond: 10,
  /** Status and opening frames go out after this long even when the deployment is silent. */
  headersAfterMs: 2_000,
  /** How long a terminal frame waits for its settlement to be committed. */
  settlementWaitMs: 250,
  /** Of a read from a deployment, at most; Node's own reads are as long. */
  upstreamReadBytes: 64 * 1024,
  /** Unsent bytes of one stream after which the deployment is paused. */
  streamBufferedBytesMax: 1024 * 1024,
  /**
   * Characters of a chunk that goes to the connection itself. What waits of one is below `streamBufferedBytesMax`, so that
   * a pause is always for chunks whose response tells when it may end.
   */
  chunkWrittenDirectlyMax: 64 * 1024,
  /**
   * Chunks that a turn of the event loop finds ready are sent together, so many answers at a time: what comes first waits for
   * the reading of those, 0.15 ms. Of one answer so many characters wait at most.
   */
  answersHeldMax: 8,
  chunksHeldCharactersMax: 16 * 1024,
  /** A reader that takes nothing of what waits for it for this long counts as gone: while its answer runs, and at its end. */
  readerStallMs: 600_000,
  readerStallAfterEndMs: 60_000,
  /**
   * Characters of an answer held for a body or a last event, which repeats them up to three times; a longer answer is
   * failed. No deployment that keeps to its allowance gets there, nor one that is ended for passing it.
   */
  answerCharactersMax: 8 * 1024 * 1024,
  /** Characters that a token has at the most, on the average of a whole answer: lines and blanks make the longest. */
  charactersPerTokenMax: 32,
  /** Tokens by which an engine may pass the limit it was given, since it looks only now and then. */
  outputOvershootMax: 32,
  /**
   * Characters of one frame that the deployment may send, and of an answer in one piece. The largest that engines mean
   * is a call with 65,536 tokens of arguments: a Mi of characters, and as much again for the marks of text within text.
   */
  upstreamFrameCharactersMax: 2 * 1024 * 1024,
  /**
   * An answer that brings so many bytes within so many milliseconds, 5,000 chunks a second where engines make hundreds,
   * waits for its turn: one of all answers in so many turns of the event loop. These bytes cost it 0.4 ms, an empty turn 5 us,
   * and another request needs ten turns or more to its first token.
   */
  burstBytes: 64 * 1024,
  burstMs: 50,
  burstTurns: 4,
  /** Up to this a frame is parsed unseen, beyond it its values are counted first: a value takes 80 to 200 ns, a character 5. */
  upstreamFrameUnseenCharactersMax: 64 * 1024,
  /** Values in one frame; arguments that come as an object have one for every two tokens. */
  upstreamFrameValuesMax: 32_768,
  /** Characters of an error's message that are read and kept; engines' own are below a Ki. */
  deploymentWordsCharactersMax: 4_096,
  /** Of an answer with an error status: its first bytes, as far as they come in this time. */
  upstreamRefusalBytesMax: 64 * 1024,
  upstreamRefusalMs: 10_000,
  /** Parts of one answer: reasoning, texts and calls together, with arguments or without. */
  upstreamPartsMax: 1_024,
  /** Characters that wait while an earlier call is not complete. Each piece and each part counts as that many more. */
  upstreamHeldCharactersMax: 2 * 1024 * 1024,
  upstreamHeldPerPiece: 64,
  /** Pieces of one read, beyond which they are joined; a read of 64 KiB holds some 1,500 as engines write them. */
  upstreamEventsAReadMax: 2_048,
  /** Characters of a call's name: two of toolNameCharactersMax and what joins them, and what a model invents. */
  upstreamCallNameCharactersMax: 512,
  upstreamCallIdCharactersMax: 256,
  /** Characters of a model name in a request or in a lookup. */
  modelNameCharactersMax: 256,
  /** The token estimate: text is counted in pieces, long words are cut, and the time for one request is bounded. */
  tokenizerPieceCharacters: 8_192,
  tokenizerRunCharactersMax: 128,
  tokenizerMs: 400,
  /** Bytes a token where the time ran out; English has more than four. */
  tokenizerGuessBytesPerToken: 3,
  /** 1e9 credits in nanos: sums of what an account may hold stay far inside 64 bits. */
  creditNanosMax: 1_000_000_000_000_000_000n,
  /** 1e6 credits for a million tokens, as the settings have it: a credit a token. */
  priceNanosMax: 1_000_000_000_000_000n,
  /** A price every week for four years; all of them are in one answer. */
  pricesOfListMax: 200,
  /** How long a migration keeps requests behind the locks that it wants: far less than a statement of theirs may take. */
  migrationLockMs: 100,
  /** So often it tries, about a minute: what runs longer in the database keeps the new version from starting. */
  migrationLockTries: 400,
  /** A name that a table and a path can show. */
  priceListNameMax: 64,
  /**
   * Wrong keys of one address, the time in which they count, and how many addresses are remembered: 200 bytes each. A program
   * that is set up wrongly sends a few; beyond, wrong keys are asked for one at a time.
   */
  wrongKeysMax: 20,
  wrongKeysWindowMs: 60_000,
  wrongKeysAddressesMax: 10_000,
  /** Proxies that one request may have come through; each is looked for in the list of those that are trusted. */
  forwardedHopsMax: 32,
  /** Wrong operators' tokens of one address, the time in which they count, and how many addresses are remembered. */
  failedTriesMax: 10,
  failedTriesWindowMs: 60_000,
  failedTriesAddressesMax: 10_000,
  /** How long a person who signed in at the console stays so: a day at work. */
  sessionMs: 12 * 3_600_000,
  /** How long a link that signs in works, once: a copy of it in a terminal's history is worth nothing later. */
  loginCodeMs: 15 * 60_000,
  /** How often a replica says that it lives, for how long it then counts as there, and when it is forgotten. */
  replicaReportMs: 10_000,
  replicaSeenMs: 60_000,
  replicaForgottenMs: 3_600_000,
  /** Requests that were refused last, of a process: to look at, not to keep; about 300 bytes each. */
  refusalsKept: 1_000,
  /** Times to the first output that a process remembers, and for how long they count as those of now. */
  firstOutputsKept: 1_000,
  firstOutputsMs: 5 * 60_000,
  /** Streams of live figures at once: a browser has one for all its tabs. */
  liveStreamsMax: 64,
  /** Between two looks at what is live, as long as a stream is open: a person sees a second. */
  liveEveryMs: 1_000,
  /** Between two looks at replicas and deployment, which is asked for its health with each. */
  liveStatusMs: 5_000,
  /** The time that tokens a second are of. */
  liveRateMs: 5_000,
  /** A stream in which nothing happens has a comment that often: proxies end what is silent for a minute. */
  liveHeartbeatMs: 15_000,
  /** Running requests that are shown, the newest, and how many of them are read at once: each turn takes some milliseconds. */
  liveRowsMax: 5_000,
  liveRowsAtOnce: 250,
  /** Bytes that wait for a watcher who reads slowly; it misses looks until they have left, and is cut off after a time. */
  liveBufferedBytesMax: 1024 * 1024,
  liveBehindMs: 30_000,
  /** How long answers to operators may take to leave when the process ends. */
  operatorCloseMs: 200,
  /** Bytes of a body of the operators' API; the largest object that it takes has some thousand. */
  operatorBodyBytesMax: 65_536,
  /** Rows of a page of the operators' API, unless and at most. */
  pageRowsDefault: 50,
  pageRowsMax: 500,
  /** 30 days, as a key of a caller may have: how long two secrets of a webhook sign. */
  webhookOverlapMs: 30 * 86_400_000,
  /** Webhooks of a service: each event is a row for each of them. */
  webhooksMax: 32,
  /** Characters of the address of a webhook: what browsers and proxies take. */
  webhookUrlCharactersMax: 2_048,
  /** [specification] How long an endpoint has to take an event. */
  webhookTimeoutMs: 15_000,
  /** [specification] Bytes of an answer that are read: what counts is its status. */
  webhookAnswerBytesMax: 64 * 1024,
  /** [specification] How long after each failed try the next one comes; three days in all. */
  webhookRetriesMs: [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map(
    (seconds) => seconds * 1_000,
  ),
  /** Deliveries under way, in all and to one webhook: a slow endpoint leaves room for the others. */
  webhookTriesAtOnceMax: 32,
  webhookTriesToOneMax: 8,
  /** How often the outbox is looked into: as late as an event may be. */
  deskLookMs: 1_000,
  /** How long after its last look a process that was killed keeps others from delivering. */
  deskLeaseMs: 10_000,
  /** Events that one transaction gives out: with 32 webhooks some 3,000 rows, 20 ms of the ledger's writer. */
  eventsTakenMax: 50,
  /** Deliveries of one webhook that a look gets, and of how many that are due it chooses them. */
  deliveriesTakenMax: 32,
  deliveriesLookedAtMax: 1_000,
  /** 30 days, as answers are kept for repeats: a receiver that was away for longer reads entries and keys anew. */
  eventsKeptMs: 30 * 86_400_000,
  /** Events that one transaction forgets. */
  eventsForgottenMax: 200,
  /** How often old events are forgotten and keys looked for that are about to expire. */
  eventsTendedMs: 60_000,
  /** [specification] How long before its end a key is announced: a day. */
  keyExpiringMs: 86_400_000,
  /** [specification] How long the deployment is away until that is an event. */
  deploymentDownMs: 30_000,
  /** How often each process looks at the deployment for that: three looks in that time. */
  deploymentLookMs: 10_000,
  /** How often each process counts what waits for webhooks: between two scrapes of Prometheus, mostly. */
  backlogLookMs: 15_000,
  /** Characters of what went wrong with a delivery that are kept. */
  deliveryErrorCharactersMax: 200,
  /** 30 days: as long as a payment provider may send one event again. */
  keptAnswerMs: 30 * 86_400_000,
  /** 30 days: as long as whoever has the old secret of a key may need to take the new one. */
  rotationOverlapSecondsMax: 30 * 86_400,
  /** How exactly it is known when a key was last used: a key costs a write for each of these in which it is. */
  keyUseMs: 60_000,
  /** Characters of the name of an account, a key or an operator, and of a note beside an amount. */
  nameCharactersMax: 100,
  noteCharactersMax: 500,
  /** Statements of operators that a SQLite ledger keeps ready; as many again make room for all of them anew. */
  preparedStatementsMax: 200,
  /** Accounts that are looked at for requests to add up, and requests that are added up in one transaction: 3 ms of SQLite's thread. */
  usageAccountsALook: 200,
  usageReceiptsAStep: 100,
  /** Receipts that one step counts for a budget that is set: about 5 ms of SQLite's thread. */
  budgetReceiptsAStep: 5_000,
  /** Receipts of what ended within so long are found by their ends and then sorted; of a longer time by their admissions, in order. */
  receiptsEndedMs: 7 * 86_400_000,
  /** How often that is done, and how long requests have the thread for themselves between two transactions. */
  usageKeepMs: 60_000,
  usageRestMs: 20,
  /** Rows of an answer of usage, a megabyte for a thousand: a year of hours is one. The next ones have a page of their own. */
  usageRowsMax: 10_000,
  /** Sums that a page reads to make them, which may be of shorter times: a year of quarters of an hour. */
  usageRowsReadMax: 40_000,
  /** What of a report goes to a socket in one turn of the event loop. */
  reportPieceBytes: 65_536,
  /** Times that are read first where each may have many rows: they tell how many more fit. */
  usageTimesFirst: 8,
  /** Requests of a page that is put together from receipts, or from parts of days: a third of a second of CPU on SQLite. */
  usageRequestsDear: 50_000,
  /** Days that receipts stay at least: refunds name them, and payment providers let theirs be disputed for so long. */
  receiptDaysMin: 90,
  /** Receipts that are archived, and entries that are rolled up for it, in one transaction: 2 ms of SQLite's thread, for which requests wait. */
  archiveReceiptsAStep: 25,
  archiveEntriesAStep: 100,
  /** How long requests have the ledger for themselves between two such transactions. */
  archiveRestMs: 20,
  /** When a process first archives after its start, and how often then: receipts of an hour at a time. */
  archiveFirstMs: 300_000,
  archiveEveryMs: 3_600_000,
  /** Characters of a label as a receipt keeps it; a longer one is kept by its hash, which is shorter. */
  labelCharactersMax: 128,
  /** Characters of a reference of a movement and of an external id: payment providers' have under 100. */
  referenceCharactersMax: 200,
  /** An account's metadata: as many pairs, and as long ones, as payment providers let their customers note. */
  metadataPairsMax: 16,
  metadataNameCharactersMax: 40,
  metadataValueCharactersMax: 500,
  /** Credits that a statement lists one by one; its sums have all of them. */
  statementCreditsMax: 10_000,
  /** How long a ledger operation waits for another process on the same file; commands hold it for milliseconds. */
  ledgerBusyMs: 5_000,
  /** How often a SQLite store looks meanwhile whether the lock is free: a look costs 10 µs, a commit 0.3 ms and more. */
  ledgerLockLookMs: 0.5,
  /** A store that has waited this long goes before stores that come later: a few commits of others. */
  ledgerPatienceMs: 5,
  /** How long one of several services lets another go first: longer than a commit takes, unless its process was stopped. */
  ledgerTurnMs: 250,
  /** Operations that may wait for the ledger's thread; more are refused as overload, so that memory stays bounded. */
  ledgerWaitingMax: 20_000,
  /** A ledger's thread that died is replaced after the first of these at the earliest, then after twice as long each time. */
  ledgerRestartFirstMs: 250,
  ledgerRestartLongestMs: 5_000,
  /** How long after a write of a request failed the ledger is not called ready: a small write may fit where theirs do not. */
  ledgerFaultHeldMs: 10_000,
  /** Operations in one commit: a group must not keep others waiting longer than a slow disk does. */
  ledgerGroupMax: 256,
  /** PostgreSQL: operations in one statement. Their rows are locked until its commit, about 0.1 ms for each of them. */
  ledgerBatchMax: 128,
  /** How long a statement with several accounts waits for one of them: longer than a commit, shorter than others notice. */
  ledgerBatchLockMs: 100,
  /** Accounts whose grants one step pays: the write lock is held meanwhile, and the next look comes within a third of a lease. */
  grantsAtOnce: 100,
  /** Entries that one step rolls into a checkpoint: the write lock is held meanwhile. */
  checkpointEntriesMax: 5_000,
  /** Rows that travel together when a ledger moves to another store. */
  movedRowsAPiece: 1_000,
  /** Rows that verifying reads at a time: few enough for memory, enough that a round trip for them costs little. */
  verifyRowsAPiece: 1_000,
  /** Problems that a report of a damaged ledger lists; all are counted. */
  verifyProblemsShown: 100,
  /** Size to which the ledger's write-ahead log shrinks again after a burst. */
  ledgerLogBytesKept: 16 * 1024 * 1024,
  /**
   * Pages of the log from which on it is written into the file: accounts' pages change again and again, and are written
   * once for all changes. With 1,000, SQLite's own number, admissions and settlements took a seventh more CPU.
   */
  ledgerLogPages: 4_000,
  /** How long a SQLite ledger may rely on its files being those that it opened: looking costs about 5 µs a group. */
  ledgerFileLookMs: 100,
  /** PostgreSQL: connections of one process; a commit waits for the disk, and a server has a hundred or so for all. */
  ledgerConnections: 10,
  /** More of one process, for what operators and callers look at: a report that takes long keeps no request waiting. */
  ledgerReaders: 10,
  /** How long a start waits for a server that is not up yet. */
  ledgerStartWaitMs: 60_000,
  /** How often it tries meanwhile, and how often it says why it waits. */
  ledgerStartTryMs: 500,
  ledgerStartReportMs: 10_000,
  /** How often a process looks for new keys that seal reasoning, and how old one is before it seals: all know it by then. */
  sealRefreshMs: 15_000,
  sealKeyLearnMs: 60_000,
  /** How often a transaction that others got in the way of is done again, and a call whose answer was lost. */
  ledgerConflictTries: 8,
  ledgerLostAnswerTries: 2,
  /** PostgreSQL ends a statement after ledgerBusyMs: where nothing has come this much later, the server is gone. */
  ledgerSilenceMs: 3_000,
  /** What a dead process held is given back within this: docs/ledger.md promises it. */
  ledgerDeadFreedMs: 3_000,
  /** How often a process looks for others that have died, and says that it lives. */
  ledgerDeadAskMs: 750,
  /** A clock is corrected by less than this in one step, and a machine that is suspended for less loses no lease. */
  clockStepMs: 500,
  /** A call waits for the ledger's thread for less than this unless its process was stopped meanwhile. */
  callStoodStillMs: 1_000,
  /** A process locks its file within moments of making it: one without a lock at this age is left over. */
  presenceLeftOverMs: 60_000,
  /** How long a lease is unless TRIBUTARY_LEASE_SECONDS says otherwise. */
  leaseSecondsDefault: 60,
  /**
   * PostgreSQL: how long a process may be missed before it counts as dead, as its session may have ended alone: it notices at
   * its next look, and has as long as is left to begin another one.
   */
  ledgerReturnMs: 1_250,
  /** Leases that end later than so many of them from now are of a clock that was ahead: it may go back by one of them. */
  leasesAheadMax: 2,
  /** A process that could not renew cancels this long before its leases end, or a sixth of them where they are short. */
  leaseSafetyMs: 10_000,
  /** A settlement that a fault held up is tried again after the first of these, then after twice as long each time. */
  settlementRetryFirstMs: 50,
  settlementRetryLongestMs: 2_000,
  /** How long an unused connection of a client is kept; proxies in front keep theirs for 60 s. */
  keepAliveMs: 75_000,
  /** How long `health` waits for an answer, beyond what /readyz may take. */
  healthAnswerMs: 2_000,
  /** How long /readyz waits for ledger and deployment. */
  readinessMs: 2_000,
  /** How long what they answered counts: whoever asks /readyz more often than balancers do costs them nothing. */
  readinessHeldMs: 1_000,
  /** How long the end of a process waits for a collector to take what is left: one that is there answers in milliseconds. */
  telemetryFlushMs: 3_000,
  /** How long the text of /metrics counts: making it takes 0.1 ms, and it is asked for without a key. */
  metricsHeldMs: 50,
  /** Characters of a path that leads nowhere in its log line: enough to see what a client's base address lacks. */
  loggedPathCharactersMax: 120,
  /**
   * By how much V8's space for old objects may grow from one collection of it to the next. V8 counts bodies that are being
   * received to it: beside bodies of 4 MiB it collected ten times a second, 10 to 30 ms each while other threads are busy.
   */
  oldSpaceGrowthPercent: 200,
  /** V8's space for young objects grows no more above this: two halves of 8 MiB. Smaller ones cost CPU under load, larger ones memory. */
  youngSpaceGrownBytes: 16 * 1024 * 1024,
  /** How often that is looked at: it takes seconds of load to double. */
  youngSpaceLookMs: 100,
  /** Room for young objects of each other thread, MiB: three of its halves, which are then of 2 MiB. */
  threadYoungMebibytes: 6,
  /** Of several processes: one that served for this long was sound, and is replaced at once when it dies. */
  processSoundMs: 10_000,
  /** One that dies again soon is replaced after the first of these, then after twice as long each time. */
  processRestartFirstMs: 250,
  processRestartLongestMs: 30_000,
  /** How many starts in a row may fail while no process serves: what they lack is not there, or comes in a minute. */
  processStartsMax: 5,
  /** One that has not ended so long after its order to is killed: settlements that wait for a locked file fit. */
  processEndMs: 10_000,
  /** How long a process may take to say what it counted; it has 0.1 ms of work with that. */
  processMetricsMs: 1_000,
  drainPollMs: 20,
  /** A listener is closed behind a turn of the event loop no longer than this, or after so long in vain. */
  drainListenerTurnMs: 1,
  drainListenerMs: 1_000,
  /**
   * Connections that a busy proxy keeps are used up within this once the listener is closed, a request each; one whose
   * answer had begun before that is kept when the answer ends.
   */
  drainConnectionsMs: 5_000,
  /** What is failed at the end of a drain has this long to be settled and to tell its client. */
  drainSettleMs: 2_000,
  /** Generations that wait for weights on disk to load give up after this. */
  modelLoadWaitMs: 5_000,
  /** A deployment is asked again what it is when this old: another model may have taken its place unseen. */
  deploymentKnownMs: 60_000,
  /** And not sooner than this after the last time, however many of its refusals ask for it. */
  deploymentLookMsMin: 1_000,
  /** What an engine says of itself, or a list of 130,000 tokens; longer answers are not read to their end. */
  engineAnswerBytesMax: 2 * 1024 * 1024,
  /** An engine's own token count is waited for this long; the estimate stands after it. */
  countTokensAskMs: 1_000,
  /** Prompts above this are not sent to be counted: an engine's tokenizer has other work. */
  countTokensAskBytesMax: 512 * 1024,
  /** Counts that an engine is asked for at a time; the estimate answers the others. */
  countTokensAsksMax: 4,
  /** How long a connection to the embedded engine may take, which is on this machine and has whole cores to do. */
  engineConnectMs: 10_000,
  /** How long one of its answers may be silent: it may wait for a slot behind several of the longest. */
  engineWaitMs: 3_600_000,
} as const;

// The relations between the numbers; a change that breaks one stops the start.
const leaseDefaultMs = limits.leaseSecondsDefault * 1_000;
/** A call to PostgreSQL waits for a connection, then for the server's limit, then for its silence. */
const ledgerFailsWithinMs = 2 * limits.ledgerBusyMs + limits.ledgerSilenceMs;
if (limits.outputAllowanceDefault > limits.outputAllowanceMax)
  throw new Error("limits: the default output allowance exceeds the cap");
if (limits.countTokensAskBytesMax > limits.bodyBytesMax)
  throw new Error("limits: prompts that an engine counts exceed the largest body");
if (limits.deploymentLookMsMin > limits.deploymentKnownMs)
  throw new Error("limits: a deployment would be known for less time than looks are apart");
if (limits.bodyInlineBytesMax > limits.bodyBytesMax)
  throw new Error("limits: bodies parsed inline exceed the largest body");
if (limits.accountRequestsMin < 2 * 32 || limits.accountRequestsPerSlot < 3)
  throw new Error(
    "limits: 32 small requests at once, or twice the slots, may not fit beside running ones",
  );
if (limits.accountBodyBytesMax < limits.concurrencyPerAccount * limits.bodyBytesMax)
  throw new Error("limits: an account cannot send as many of the largest bodies as it has slots");
if (limits.accountBodyBytesMax < limits.accountRequestsMin * limits.bodyInlineBytesMax)
  throw new Error(
    "limits: the requests that an account may have under way do not fit, though small",
  );
if (limits.bodiesBytesMax < 4 * limits.accountBodyBytesMax)
  throw new Error("limits: fewer than four accounts can fill the budget of bodies");
if (limits.bodiesBytesMax > 512 * 1024 * 1024 - 3 * 128 * 1024 * 1024)
  throw new Error("limits: bodies, threads and the process itself do not fit into 512 MiB");
if (limits.bodyThreads <= limits.bodyThreadsPerAccount + limits.bodyThreadsForCounts)
  throw new Error("limits: one account and counts of others keep every thread busy");
if (limits.tinyPiecesMax * limits.tinyPieceBytes > limits.bodyInlineBytesMax)
  throw new Error("limits: bodies of tiny pieces are read beyond what is parsed inline");
if (limits.bodyStallMs > limits.requestReceiveMs)
  throw new Error("limits: a body that stands still is waited for longer than one that comes");
if (limits.inputBoundMax > limits.bodyBytesMax)
  throw new Error("limits: the byte-based bound could never be reached");
// The lease keeper renews after a third of a lease, and then expires others: where neither is answered, it tries again.
if (leaseDefaultMs / 3 + 2 * ledgerFailsWithinMs > leaseDefaultMs - limits.leaseSafetyMs)
  throw new Error("limits: leases would be given up before a renewal is tried a second time");
if (limits.leaseSafetyMs > leaseDefaultMs / 6)
  throw new Error("limits: the safety before the end of a lease is longer than a sixth of it");
if (limits.leasesAheadMax < 2)
  throw new Error(
    "limits: a clock that is set back by a lease would make living leases look impossible",
  );
// It is missed at the next look of any other process, which looks again as soon as it counts as dead; a third is for the work.
if (limits.ledgerDeadAskMs + limits.ledgerReturnMs > (limits.ledgerDeadFreedMs * 2) / 3)
  throw new Error("limits: what a dead process held would be given back later than promised");
if (limits.ledgerDeadAskMs >= limits.ledgerReturnMs)
  throw new Error("limits: a process whose session ended would count as dead before its next look");
if (limits.clockStepMs >= limits.ledgerReturnMs || limits.clockStepMs >= limits.leaseSafetyMs)
  throw new Error("limits: a suspension that goes unnoticed could end a lease");
if (limits.presenceLeftOverMs <= limits.ledgerBusyMs)
  throw new Error(
    "limits: the file of a process that waits for the ledger would count as left over",
  );
if (limits.processEndMs < limits.ledgerBusyMs)
  throw new Error(
    "limits: a process would be killed while its last settlements wait for the ledger",
  );
if (limits.processRestartFirstMs > limits.processRestartLongestMs)
  throw new Error("limits: the first wait for a new process is longer than the longest");
if (limits.liveRateMs < 2 * limits.liveEveryMs || limits.liveHeartbeatMs < limits.liveEveryMs)
  throw new Error("limits: live figures would be of no time between two looks");
if (limits.ledgerTurnMs >= limits.ledgerBusyMs)
  throw new Error("limits: who waits for a turn would never try without one");
if (limits.ledgerStartWaitMs < 2 * ledgerFailsWithinMs)
  throw new Error("limits: a start would try a server that is silent no second time");
if (limits.settlementRetryFirstMs >= limits.settlementWaitMs)
  throw new Error("limits: a terminal frame would not wait for the second try of its settlement");
if (limits.drainSettleMs < limits.settlementWaitMs + 2 * limits.drainPollMs)
  throw new Error("limits: a drain would end before the answers whose settlements it waits for");
if (limits.drainSettleMs < limits.settlementRetryLongestMs)
  throw new Error(
    "limits: a settlement that was held up would not be tried again while a drain settles",
  );
if (limits.ledgerRestartFirstMs > limits.ledgerRestartLongestMs)
  throw new Error(
    "limits: the first wait for a new thread of the ledger is longer than the longest",
  );
if (limits.deskLeaseMs < 5 * limits.deskLookMs)
  throw new Error("limits: a process that looks in time could lose the desk of events");
if (limits.deploymentDownMs < 2 * limits.deploymentLookMs)
  throw new Error("limits: the deployment would be down by a single look");
if (limits.eventsKeptMs < 2 * limits.webhookRetriesMs.reduce((sum, ms) => sum + ms, 0))
  throw new Error("limits: an event would be forgotten before its last try");
if (limits.ledgerGroupMax > limits.ledgerWaitingMax)
  throw new Error("limits: one commit takes more operations than may wait for it");
if (limits.sealKeyLearnMs < 2 * limits.sealRefreshMs + 2 * limits.ledgerBusyMs)
  throw new Error("limits: a key would seal before every process has learned of it");
if (
  (limits.outputAllowanceMax + limits.outputOvershootMax) * limits.charactersPerTokenMax +
    limits.upstreamFrameCharactersMax >
  limits.answerCharactersMax
)
  throw new Error("limits: an answer within its allowance could be too long to be held");
if (limits.upstreamFrameUnseenCharactersMax > 2 * limits.upstreamFrameValuesMax)
  throw new Error("limits: frames that are parsed unseen could have many more values than others");
if (limits.deploymentWordsCharactersMax > limits.upstreamRefusalBytesMax)
  throw new Error("limits: more of a refusal would be read than is received");
if (3 * limits.chunkWrittenDirectlyMax > limits.streamBufferedBytesMax)
  throw new Error("limits: a chunk that is written directly could be a reason to pause");
