import type { Definitions } from "./command.ts";
import { callHere } from "./make-call.ts";

const ofTypes = "events with commas between, such as account.low_balance,key.expiring; or all";

/** The commands about webhooks: words, options and help. Each is a call of the operators' API, on the ledger here too. */
export function addWebhookCommands(definitions: Definitions): void {
  const { program } = definitions;
  const call = callHere(definitions);
  const webhook = program
    .command("webhook")
    .summary("addresses that get what happens")
    .description(
      "Webhooks: addresses that get events, signed, such as an account's low balance (docs/webhooks.md). --json prints what the operators' API answers.",
    );
  const ofOne = (action: string) => webhook.command(action).argument("<WEBHOOK_ID>");
  webhook
    .command("create")
    .summary("make one; prints its secret, once")
    .description(
      "Makes a webhook, which gets what happens from now on, and prints the secret that signs, once.",
    )
    .argument("<ADDRESS>", "https, or http where TRIBUTARY_WEBHOOK_PRIVATE allows private networks")
    .option("--description <T>", "what lists say of it")
    .option("--types <TYPES>", ofTypes)
    .action(call);
  webhook
    .command("list")
    .summary("all of them, and which are failing")
    .description("Lists the webhooks, without their secrets.")
    .action(call);
  ofOne("change")
    .summary("its address, types or status")
    .description("Changes a webhook: what is not named stays.")
    .option("--address <ADDRESS>", "where events go from now on")
    .option("--description <T>", "what lists say of it")
    .option("--types <TYPES>", ofTypes)
    .option("--status <S>", "active, or paused: events wait, up to 30 days")
    .action(call);
  ofOne("rotate")
    .summary("a new secret")
    .description("Gives a webhook a new secret, and prints it, once.")
    .option(
      "--overlap <T>",
      "for how long the old secret signs too, up to 30d; without it: no longer",
    )
    .action(call);
  ofOne("delete")
    .summary("with what it has not got yet")
    .description("Takes a webhook away, with what it has not got yet.")
    .action(call);
  ofOne("test")
    .summary("sends it an event of type webhook.test")
    .description("Sends an event of type webhook.test to this webhook alone.")
    .action(call);
  ofOne("deliveries")
    .summary("what it got and gets, the newest event first")
    .description("Lists what a webhook got and gets, of the newest event first.")
    .option("--state <S>", "pending, delivered or failed")
    .option("--limit <N>", "at most so many, up to 500", "50")
    .action(call);
  ofOne("resend")
    .summary("sends an event again, with all its tries")
    .description("Sends an event again, with all its tries.")
    .argument("<EVENT_ID>")
    .action(call);
}
