import type { Definitions } from "./command.ts";
import { callHere } from "./make-call.ts";

const json =
  '--json prints {"name","source","prices":[{"effective_from","input","cached_input","output"}],"created_at","version"}.';

/** The commands about price lists: words, options and help. Each is a call of the operators' API, on the ledger here too. */
export function addPriceCommands(definitions: Definitions): void {
  const call = callHere(definitions);
  const price = definitions.program
    .command("price")
    .summary("price lists, and from when their prices hold")
    .description(
      `Price lists: what tokens cost, in credits for a million, and from when. Accounts pay by \`default\` unless \`tributary account price\` gives them another. As long as the ledger has no list \`default\`, it is the prices of the settings; once it is made here, those settings are not used any more. ${json}`,
    );
  price.command("list").summary("all of them").description("Lists all price lists.").action(call);
  price
    .command("show")
    .summary("one of them")
    .description("Shows one price list.")
    .argument("<NAME>")
    .action(call);
  const withPrices = (action: "create" | "change") =>
    price
      .command(action)
      .argument("<NAME>")
      .requiredOption("--input <P>", "credits for a million input tokens")
      .option("--cached-input <P>", "of those that the deployment had in its cache; as --input")
      .requiredOption("--output <P>", "credits for a million output tokens")
      .option(
        "--from <T>",
        "from when they hold: 2027-01-01, 2027-01-01T00:00:00Z, or 30d from now",
      );
  withPrices("create")
    .summary("make one")
    .description(
      "Makes a price list. Its prices hold from now on; those of `default` may also hold from a time to come, until which the settings do.",
    )
    .action(call);
  withPrices("change")
    .summary("other prices, from now on or from a time to come")
    .description(
      "Gives a price list other prices from now on, or from a time to come. Prices that have begun stay as they are: receipts tell what each request was charged by.",
    )
    .action(call);
  price
    .command("remove")
    .summary("prices that have not begun")
    .description("Takes prices of a list away that have not begun.")
    .argument("<NAME>")
    .requiredOption("--from <T>", "the time from which they would hold, as `price show` has it")
    .action(call);
}
