import { type CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import { creditKinds } from "../ledger/journal.ts";
import type { Definitions } from "./command.ts";
import { callHere } from "./make-call.ts";

type Call = ReturnType<typeof callHere>;

const none = "none takes it away";

/** The commands about accounts: words, options and help. */
export function addAccountCommands(definitions: Definitions): void {
  const call = callHere(definitions);
  const account = definitions.program
    .command("account")
    .summary("accounts and their credit")
    .description(
      'Accounts and their credit. Amounts are decimal numbers of credits with at most 9 decimals. --json prints {"id","name","balance","held","available","status"}.',
    );
  account
    .command("create")
    .summary("make an account")
    .description("Makes an account.")
    .argument("<NAME>")
    .option("--credit <C>", "with this credit", "0")
    .action(call);
  account
    .command("list")
    .summary("all accounts with their credit")
    .description("Lists all accounts with their credit.")
    .action(call);
  account
    .command("show")
    .summary("one of them")
    .description("Shows one account.")
    .argument("<ID>")
    .action(call);
  account
    .command("credit")
    .summary("add credit; a negative amount takes it back")
    .description(
      'Adds credit; a negative amount takes it back, never what is held. --json prints the account with "entry", what the journal says of it.',
    )
    .argument("<ID>")
    .argument("<AMOUNT>")
    .addOption(new Option("--kind <KIND>", "top_up unless it says so").choices(creditKinds))
    .option("--note <T>", "what the journal says about it; callers see it")
    .option("--reference <T>", "a name of it, such as a payment's: a repeat adds nothing again")
    .option("--receipt <ID>", "of a refund: the request whose charge it gives back")
    .action(call);
  account
    .command("disable")
    .summary("its keys are answered 403 from the next request on")
    .description("Disables an account: its keys are answered 403 from the next request on.")
    .argument("<ID>")
    .action(call);
  account
    .command("enable")
    .summary("its keys are served again")
    .description("Enables an account: its keys are served again.")
    .argument("<ID>")
    .action(call);
  account
    .command("price")
    .summary("the price list by which it pays")
    .description("Gives an account the price list by which its requests pay from now on.")
    .argument("<ID>")
    .argument("<LIST>", "`default`, or another one of `tributary price list`")
    .action(call);
  addAccountChanges(account, call);
}

function addAccountChanges(account: CommandUnknownOpts, call: Call): void {
  account
    .command("change")
    .summary("its name, limits, grant and what else operators set")
    .description(
      "Changes an account: what is not named stays. --json prints the account as the operators' API answers it.",
    )
    .argument("<ID>")
    .option("--name <N>", "what lists call it")
    .option("--external-id <T>", `the name that another system has for it; ${none}`)
    .option("--metadata <PAIRS>", "pairs with commas between: team=search,cost= takes `cost` away")
    .option("--concurrent-requests <N>", `how many of its requests run at once; ${none}`)
    .option("--requests-per-minute <N>", `of each of its keys; ${none}`)
    .option("--output-tokens-max <N>", `of one answer; ${none}`)
    .option("--low-balance-at <C>", `below it the balance is low, which webhooks tell; ${none}`)
    .option("--grant <C>", `what it is granted at the begin of each period; ${none}`)
    .option("--every <P>", "the period of the grant: day, week or month")
    .option("--timezone <NAME>", "of the grant's periods, such as Europe/Berlin; UTC unless set")
    .option("--carry-over <YES>", "yes: what is left of a grant stays when the next one comes; no")
    .action(call);
  account
    .command("statement")
    .summary("what moved its balance in a month")
    .description(
      "Prints the statement of a month of UTC: opening balance, top-ups, grants, refunds, corrections, usage by day, closing balance and head.",
    )
    .argument("<ID>")
    .argument("<MONTH>", "such as 2026-10")
    .option("--form <FORM>", "csv, or html: a page to print", "csv")
    .action(call);
}

/** The same about keys. */
export function addKeyCommands(definitions: Definitions): void {
  const call = callHere(definitions);
  const key = definitions.program
    .command("key")
    .summary("API keys of an account")
    .description("API keys. The ledger keeps only a hash of each, so a key is shown once.");
  key
    .command("create")
    .summary("make a key and print it")
    .description('Makes a key and prints it. --json prints {"id","account","name","key"}.')
    .argument("<ACCOUNT>")
    .option("--name <N>", "what lists call it", "default")
    .option("--scopes <S>", "what it is for: generate, read, or both", "generate,read")
    .option("--expires <T>", "good until T: 2026-01-31, 2026-01-31T12:00:00Z, 24h or 90d")
    .option("--requests-per-minute <N>", "never more than its account may")
    .option("--output-tokens-max <N>", "of one answer, never more than its account may")
    .action(call);
  addKeyChange(key, call);
  key
    .command("list")
    .summary("the keys of an account, without their secrets")
    .description("Lists the keys of an account, without their secrets.")
    .argument("<ACCOUNT>")
    .action(call);
  key
    .command("rotate")
    .summary("a new secret for a key, with its name, limits and receipts")
    .description(
      'Gives a key a new secret and prints it. Its id, name, limits and receipts go on. --json prints {"id","account","name","key"}.',
    )
    .argument("<KEY_ID>")
    .option(
      "--overlap <T>",
      "for how long the old secret is still good, up to 30d; without it: no longer",
    )
    .action(call);
  key
    .command("pause")
    .summary("it is answered 403 from the next request on")
    .description("Pauses a key: it is answered 403 from the next request on.")
    .argument("<KEY_ID>")
    .action(call);
  key
    .command("resume")
    .summary("a paused one is served again")
    .description("Serves a paused key again.")
    .argument("<KEY_ID>")
    .action(call);
  key
    .command("revoke")
    .summary("it is answered 401 from the next request on")
    .description("Revokes a key: it is answered 401 from the next request on.")
    .argument("<KEY_ID>")
    .action(call);
}

function addKeyChange(key: CommandUnknownOpts, call: Call): void {
  key
    .command("change")
    .summary("its name, scopes, expiry, limits and budget")
    .description(
      "Changes a key, from the next request on: what is not named stays. --json prints the key as the operators' API answers it.",
    )
    .argument("<KEY_ID>")
    .option("--name <N>", "what lists call it")
    .option("--scopes <S>", "what it is for: generate, read, or both")
    .option("--expires <T>", `good until T: 2026-01-31, 2026-01-31T12:00:00Z, 24h or 90d; ${none}`)
    .option("--requests-per-minute <N>", `never more than its account may; ${none}`)
    .option("--output-tokens-max <N>", `of one answer; ${none}`)
    .option("--budget <C>", `what it may be charged in a period; ${none}`)
    .option("--period <P>", "of the budget: day, week, month or total")
    .option("--timezone <NAME>", "of the budget's periods, such as Europe/Berlin; UTC unless set")
    .action(call);
}
