import { Option } from "@commander-js/extra-typings";
import { operatorRoles } from "../ledger/administration/operator-administration.ts";
import type { Definitions } from "./command.ts";
import { callHere } from "./make-call.ts";

const load = { api: () => import("./api.ts"), operator: () => import("./operator.ts") };

/** The commands about operators and what they changed: words, options and help. */
export function addOperatorCommands(definitions: Definitions): void {
  addOperator(definitions);
  addApi(definitions);
  addAudit(definitions);
}

function addOperator(definitions: Definitions): void {
  const { finish, program, shell } = definitions;
  const call = callHere(definitions);
  const operator = program
    .command("operator")
    .summary("who may administer, and their tokens")
    .description(
      'Operators: people and programs that administer the service, each with a role and a token. owner may do everything; billing accounts, keys, credit, prices and usage; viewer may read. --json prints {"id","name","role","created","revoked"}.',
    );
  operator
    .command("create")
    .summary("prints the token, once")
    .description(
      'Makes an operator and prints its token, once: only its hash is stored. --json prints {"id","name","role","created","revoked","token","expires"}.',
    )
    .argument("<NAME>")
    .addOption(
      new Option("--role <ROLE>", "what it may do").choices(operatorRoles).makeOptionMandatory(),
    )
    .option(
      "--expires <T>",
      "when its token expires: 2027-01-31, 2027-01-31T12:00:00Z, or 90d from now",
    )
    .action(call);
  operator
    .command("list")
    .summary("all operators, without their tokens")
    .description("Lists the operators, the revoked ones too, without their tokens.")
    .action(call);
  operator
    .command("login-link")
    .summary("a link that signs in to the console, once")
    .description(
      'Prints a link that signs an operator in to the console, once and within 15 minutes; on a ledger without operators it makes the first one, "owner". The address is TRIBUTARY_OPERATOR_URL, else that of TRIBUTARY_OPERATOR_HOST and _PORT; where the service took another port, its log says which: put it in the link. --json prints {"operator","link"}.',
    )
    .option("--operator <ID>", "for this operator; else for the only owner")
    .action(async (options) =>
      finish(await (await load.operator()).printLoginLink(shell, options)),
    );
  operator
    .command("revoke")
    .summary("its tokens end at once")
    .description("Revokes an operator: its tokens end at once.")
    .argument("<OPERATOR_ID>")
    .action(call);
}

function addApi({ finish, program, shell }: Definitions): void {
  program
    .command("api")
    .summary("one call of the operators' API, from anywhere")
    .description(
      "One call of the operators' API, which /api/v1/openapi.json describes; what has no command of its own goes by it. The token is in TRIBUTARY_OPERATOR_TOKEN. --json prints the answer as it came; exit 1 for a problem.",
    )
    .argument("<METHOD>", "GET, POST, PATCH, PUT or DELETE")
    .argument("<PATH>", "such as /accounts?limit=10, with or without /api/v1")
    .argument("[JSON]", "the body")
    .option(
      "--url <URL>",
      "where operators are listened to; else TRIBUTARY_OPERATOR_URL, or TRIBUTARY_OPERATOR_HOST and _PORT",
    )
    .option("--once <KEY>", "a change under this idempotency-key happens once")
    .action(async (...[method, path, body, options]) =>
      finish(await (await load.api()).callApi(shell, { method, path, body, ...options })),
    );
}

function addAudit(definitions: Definitions): void {
  definitions.program
    .command("audit")
    .summary("who changed what")
    .description(
      'What operators and commands changed, newest first: accounts, credit, keys, operators. A command is user:NAME, the service itself `service`. --json prints [{"sequence","time","actor","action","target","before","after"}].',
    )
    .option("--actor <ACTOR>", "changes of one operator: oper_... or user:NAME")
    .option("--action <ACTION>", "changes of one kind, such as account.credit")
    .option("--target <ID>", "changes of one account, key or operator")
    .option("--since <T>", "changes from T on: 2026-01-31, 2026-01-31T12:00:00Z, 24h or 7d")
    .option("--until <T>", "changes before T")
    .option("--limit <N>", "at most so many, up to 500", "50")
    .action(callHere(definitions));
}
